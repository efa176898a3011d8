"""What a run is, as facts with names: is it the same run, the same setting, may it be resumed, does it belong here?"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from onedomain.errors import UserError
from onedomain.runs.commandline import resume_command
from onedomain.runs.manifest import Manifest

BOOKKEEPING = ("checkpoint_every", "log_every")  # settings that change no result
LAST, BEFORE_IT = "adaptation.", "before."  # what facts of adaptations begin with: the last, one before it …
# Facts that follow from seeds, draws and fingerprints: what was drawn, and what else describes the images.
_GOES_ALONG = ("parent_weights", "images", "drawn", "missing_classes", "benchmark", "split")
_OF_NO_MATTER = ("parent", "before", "settings", "usually")  # where the parent lay; and what is told by other facts


def is_repetition(name: str) -> bool:
    """Whether a fact tells repetitions of one setting apart: a seed or a draw."""
    return name == "seed" or (name.startswith(LAST) and name.endswith(".draw"))


def decides(name: str) -> bool:
    """Whether a fact decides a result, but for chance."""
    last = name.rpartition(".")[2]
    along = last in _GOES_ALONG or name.startswith("source.")
    return not (is_repetition(name) or along or last in BOOKKEEPING)


@dataclass(frozen=True)
class Identity:
    """All facts of a run by their names, the same from its manifest and, as far as they tell them, from its records.

    A setting is a fact too: `steps`, or `adaptation.steps` of the adaptation. `usually` has, for each that was set
    otherwise, the usual value; None if that is not known.
    """

    facts: Mapping[str, Any]
    usually: Mapping[str, Any] | None
    settings: frozenset[str]  # the names of those facts that are settings
    adapted: bool
    from_scratch: bool  # nothing of the run that was adapted is left

    @cached_property
    def setting(self) -> str:
        """Equal for runs that differ by seed and draw alone."""
        return self.setting_without(lambda name: False)

    def setting_without(self, varied: Callable[[str], bool]) -> str:
        """Equal for runs that differ by seed, draw and the varied facts alone."""
        kept = {name: value for name, value in self.facts.items() if decides(name) and not varied(name)}
        return json.dumps(kept, sort_keys=True)

    @property
    def repetition(self) -> tuple[int, ...]:
        """In what the runs of a setting differ: the seed, unless nothing of what it trained is left, and the draws."""
        draws = sorted((name for name in self.facts if is_repetition(name) and name != "seed"), key=len, reverse=True)
        return tuple(self.facts[name] for name in ([] if self.from_scratch else ["seed"]) + draws)

    def is_usual(self, name: str) -> bool:
        """Whether a fact is a setting that has its usual value."""
        return name in self.settings and self.usually is not None and name not in self.usually


def changed_settings(settings: Mapping[str, Any], usually: Mapping[str, Any] | None) -> dict[str, Any]:
    """What was set otherwise than usual and changes a result, as it was set.

    >>> changed_settings({"steps": 9, "alpha": 1.0, "log_every": 5}, {"steps": 600, "log_every": 50})
    {'steps': 9}
    """
    return {name: value for name, value in settings.items() if name in (usually or {}) and name not in BOOKKEEPING}


def identify(run: Manifest | Mapping[str, Any]) -> Identity:
    """The identity of a run from its manifest or from a record, which says the same of its run in fewer words."""
    row = _as_record(run) if isinstance(run, Manifest) else run
    info = row.get("adaptation")
    scratch = any(each.get("from_scratch") for each in _history(info))
    facts = {"method": row["method"], "benchmark": row.get("trained_on"), "seed": row["seed"]}
    facts |= {"source": row.get("source"), **_under("source.", row.get("about_source", {}))}
    facts |= _under("network.", row.get("network", {}))
    parts = [("", row), *((f"{LAST}{BEFORE_IT * place}", each) for place, each in enumerate(_history(info)))]
    usually: dict[str, Any] = {}
    names: list[str] = []
    for prefix, part in parts:
        if prefix:
            facts |= _under(prefix, {name: value for name, value in part.items() if name not in _OF_NO_MATTER})
        if prefix and part.get("from_scratch"):
            continue  # its settings are those of the run
        facts |= _under(prefix, part["settings"])
        usually |= _under(prefix, part.get("usually") or {})
        names += [f"{prefix}{name}" for name in part["settings"]]
    known = all(part.get("usually") is not None for _, part in parts)
    return Identity(facts, usually if known else None, frozenset(names), info is not None, scratch)


def first_difference(there: Identity, here: Identity, among: Callable[[str], bool] = decides) -> str:
    """The name of the first fact in which two runs differ; empty if they are the same. Those of adaptations come first.

    A setting that one of them does not know yet is no difference if the other has it as usual.
    """
    names = [name for name in {**there.facts, **here.facts} if among(name)]
    for name in sorted(names, key=lambda name: not name.startswith(LAST)):
        one, other = there.facts.get(name), here.facts.get(name)
        unknown = (name not in there.facts and here.is_usual(name)) or (name not in here.facts and there.is_usual(name))
        if one != other and not unknown:
            return name
    return ""


def spoken(name: str) -> str:
    """A fact's name for people.

    >>> spoken("source"), spoken("adaptation.before.fingerprint"), spoken("adaptation.steps")
    ('source data', 'adaptation.before.target data', 'adaptation.steps')
    """
    known = {"source": "source data", "network.name": "network"}.get(name, name)
    return known.replace(".fingerprint", ".target data")


def refuse_changes(before: Manifest, now: Manifest) -> None:
    """A resumed run must be the same run: same method, settings, seed, network and data."""
    if (before.adaptation is None) != (now.adaptation is None):
        was = "a trained run" if before.adaptation is None else "an adapted run"
        raise UserError("out", f"holds {was}, which another command resumes", resume_command(before))
    if before.environment.processes != now.environment.processes:  # each adds up in another order
        given = f"{now.environment.processes} now, and {before.environment.processes} before"
        raise UserError("processes", given, resume_command(before))
    there, here = identify(before), identify(now)
    name = first_difference(there, here, among=lambda name: True)
    if name:
        old, new = there.facts.get(name), here.facts.get(name)
        hint = f"{old!r} to resume, or another --out"
        raise UserError(name.rpartition(".")[2], f"is {new!r} now, and was {old!r}", hint)


def _as_record(manifest: Manifest) -> dict[str, Any]:
    given = manifest.model_dump(mode="json")
    source = given.pop("source")
    return {
        **given,
        "trained_on": manifest.benchmark,
        "source": source.pop("fingerprint"),
        "about_source": source,
    }


def _history(info: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
    return [] if info is None else [info, *_history(info.get("before"))]


def _under(prefix: str, values: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{prefix}{name}": value for name, value in values.items()}
