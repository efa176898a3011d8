"""What runs are called: by their method, what they were adapted to, and what tells them from others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from onedomain.methods.adapt import adaptation_names
from onedomain.reporting.reproduce.tables import TABLES
from onedomain.runs.commandline import setting_text
from onedomain.runs.identity import BEFORE_IT, LAST, decides, spoken
from onedomain.runs.manifest import AdaptationInfo
from onedomain.runs.recipe import DEFAULT
from onedomain.runs.records import RunRecords

MOST_NAMED = 3  # settings that a name says; with more of them the folder's name is shorter


def method_title(method: str) -> str:
    """As the paper's tables spell it; a method that is in none of them is called by its name."""
    rows = [row for table in TABLES.values() for row in table.rows]
    known = {row.adaptation.method: row.label for row in rows if row.adaptation}
    return {**known, **{row.key: row.label for row in reversed(rows)}}.get(method, method)


def run_title(run: RunRecords) -> str:
    """The method, and what it was adapted to, in that order: runs of one title differ by settings, seed or draw."""
    manifest = run.manifest
    parts = [_trained_title(run)]
    for info in reversed(manifest.adaptations):
        how = f"{_how(info)} " if _how(info) else ""
        unit = "image" if manifest.source.dense else "shot"
        parts.append(f"{how}{info.shots} {unit}{'' if info.shots == 1 else 's'} of {info.target}")
    return ", ".join(parts)


def adapting_title(run: RunRecords) -> str:
    """Of an adapted run: what was adapted and how, not to what."""
    return ", ".join(filter(None, [_trained_title(run), *map(_how, reversed(run.manifest.adaptations))]))


def _trained_title(run: RunRecords) -> str:
    # A method of training may have the name of an adaptation.
    title = f"{method_title(run.manifest.method)}{' from scratch' if run.identity.from_scratch else ''}"
    return title if run.manifest.recipe == DEFAULT else f"{title} (recipe {run.manifest.recipe})"


def _how(info: AdaptationInfo) -> str:
    """The usual adaptation goes without saying."""
    return "" if info.from_scratch or info.method == adaptation_names()[0] else info.method


def titles(runs: Sequence[RunRecords]) -> list[str]:
    """Of runs of different settings: the title of each, with what tells it apart if there are several of that title."""
    plain = [run_title(run) for run in runs]
    found = []
    for run, title in zip(runs, plain, strict=True):
        words = telling(run, [other for other, its in zip(runs, plain, strict=True) if its == title])
        many = len(words) > MOST_NAMED
        found.append(f"{title} ({_folder_name(run, runs)})" if many else ", ".join([title, *words]))
    often = Counter(found)
    return [
        title if often[title] == 1 else f"{title} ({_folder_name(run, runs)})"
        for title, run in zip(found, runs, strict=True)
    ]


def telling(
    run: RunRecords, rivals: Sequence[RunRecords], without: Callable[[str], bool] = lambda name: False
) -> list[str]:
    """What tells a run from its rivals, in words: facts in which they differ, unless its own is the usual one."""
    own, others = run.identity, [rival.identity.facts for rival in rivals]
    words = [
        _words(name, run)
        for name, value in own.facts.items()
        if decides(name) and not without(name)
        if any(other.get(name) != value for other in others) and not own.is_usual(name)
    ]
    return list(dict.fromkeys(words))


def _words(name: str, run: RunRecords) -> str:
    manifest = run.manifest
    if name == "source":
        return f"trained on {manifest.benchmark or manifest.source.name}"
    if name.startswith("network."):
        begun = f" from {manifest.network.file.split()[0]}" if manifest.network.file else ""
        return f"network {manifest.network.name or manifest.network.own}{begun}"
    short = name.removeprefix(LAST)  # where nothing else has that name
    told = spoken(name)
    told = told if short in manifest.settings or short.startswith(BEFORE_IT) else told.removeprefix(LAST)
    return f"{told}={setting_text(run.identity.facts[name])}"


def _folder_name(run: RunRecords, runs: Sequence[RunRecords]) -> str:
    """The last part of its path, or all of it where others end alike, as draws do."""
    alike = sum(other.folder.name == run.folder.name for other in runs)
    return run.folder.name if alike == 1 else str(run.folder)
