"""`onedomain methods`: the methods and the adaptations on one screen, or one of them with its settings."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from onedomain.cli import options as shared
from onedomain.cli.output import print_json

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from onedomain.methods.base import Method

GROUP = shared.AVAILABLE
WIDTH = 80  # columns of the narrowest terminal
LIMITS = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}


def _all_names() -> list[str]:
    from onedomain.methods import method_names
    from onedomain.methods.adapt import adaptation_names

    return list(dict.fromkeys([*method_names(), *adaptation_names()]))


@dataclass(frozen=True)
class Options:
    name: str | None = shared.argument("NAME", "Show this one, with its settings.", complete=_all_names, default=None)
    adaptations: bool = shared.option(
        "--adaptations", "List the methods of `adapt` instead of those of `train`.", default=False
    )
    json: bool = shared.json()


def methods(options: Options) -> None:
    """List the methods, or show one with its settings."""
    from onedomain.errors import unknown
    from onedomain.methods import method_class, method_names
    from onedomain.methods.adapt import adaptation_class, adaptation_names

    if options.name is not None and options.name not in _all_names():
        raise unknown("method", options.name, _all_names())
    found: dict[str, dict[str, type[Method]]] = {
        "methods": _found(method_names(), method_class, options.name),
        "adaptations": _found(adaptation_names(), adaptation_class, options.name),
    }
    if options.json:
        rows = {kind: [_described(name, each) for name, each in of.items()] for kind, of in found.items()}
        print_json(rows)
    elif options.name is not None:
        commands = {"methods": "train", "adaptations": "adapt"}
        chosen = [(commands[kind], each) for kind, of in found.items() for each in of.values()]
        heading = "onedomain {} --method " + options.name
        print("\n\n".join(_in_full(heading.format(command), each) for command, each in chosen))
    elif options.adaptations:
        _show_list(found["adaptations"])
    else:
        _show_list(found["methods"])
        others = f"Methods of adapt: {', '.join(found['adaptations'])} (listed by --adaptations)."
        print("", *textwrap.wrap(others, WIDTH), sep="\n")
        print("One of them with its settings: onedomain methods NAME")


def _found(names: list[str], find: Callable[[str], type[Method]], only: str | None) -> dict[str, type[Method]]:
    """The classes by name. One of another package that cannot be imported is told, and the others are listed."""
    from onedomain.data.progress import say
    from onedomain.errors import OnedomainError

    found = {}
    for name in names if only is None else {*names} & {only}:
        try:
            found[name] = find(name)
        except OnedomainError as error:
            if only is not None:
                raise
            say(f"left out: {error}")
    return found


def _show_list(found: Mapping[str, type[Method]]) -> None:
    """A line each: no wider and, all methods together, no higher than the smallest terminal."""
    width = max(map(len, found))
    print(f"{'method':{width}}  cost  what it does (cost: time of a step, ERM = 1)")
    for name, each in found.items():
        cost = "–" if each.cost is None else f"{each.cost:.1f}"
        summary = textwrap.shorten(each.summary, WIDTH - width - 8, placeholder=" …", break_on_hyphens=False)
        print(f"{name:{width}}  {cost:>4}  {summary}")


def _in_full(heading: str, kind: type[Method]) -> str:
    lines = [heading, *textwrap.wrap(kind.summary, WIDTH), *textwrap.wrap(f"From: {kind.citation}", WIDTH)]
    if kind.cost is not None:
        lines.append(f"Cost: {kind.cost:.1f}, the time of a step (ERM = 1)")
    if kind.recipes:
        lines.append(f"Recipes (--recipe NAME): default, {', '.join(kind.recipes)}")
    lines += ["", "Settings (--set NAME=VALUE), with their defaults:"]
    for name, setting in kind.Settings.model_fields.items():
        lines.append(f"  {name}={setting.default}")
        told = "; ".join(text for text in (setting.description, _allowed(setting), _searched(setting)) if text)
        lines += textwrap.wrap(told, WIDTH, initial_indent=" " * 6, subsequent_indent=" " * 6)
    return "\n".join(lines)


def _allowed(setting: FieldInfo) -> str:
    """The choices or the range of a setting; empty if its type says no more."""
    kinds = [kind for kind in get_args(setting.annotation) or (setting.annotation,) if kind is not type(None)]
    if get_origin(setting.annotation) is Literal:
        return f"one of {', '.join(map(str, kinds))}"
    if kinds == [bool]:
        return "True or False"
    limits = [
        f"{text} {getattr(each, name):,}"
        for each in setting.metadata
        for name, text in LIMITS.items()
        if hasattr(each, name)
    ]
    return ", ".join(limits)


def _searched(setting: FieldInfo) -> str:
    """Where `tune` looks for it; empty if it does not."""
    extra = setting.json_schema_extra
    found: Any = extra.get("search") if isinstance(extra, dict) else None
    if found is None:
        return ""
    if "among" in found:
        return "tune: all" if _allowed(setting) else f"tune: {', '.join(map(str, found['among']))}"
    if "around" in found:
        return f"tune: up to {found['around']} times more or less"
    return f"tune: {found['low']:g} to {found['high']:g}{', log' if found['log'] else ''}"


def _described(name: str, kind: type[Method]) -> dict[str, Any]:
    settings = {
        field: {"default": info.default, "what": info.description} for field, info in kind.Settings.model_fields.items()
    }
    row = {"name": name, "summary": kind.summary, "citation": kind.citation, "cost": kind.cost}
    return {**row, "recipes": {name: dict(recipe) for name, recipe in kind.recipes.items()}, "settings": settings}
