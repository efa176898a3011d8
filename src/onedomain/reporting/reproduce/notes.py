"""What stands below a table: what was not scored or is missing, and what its numbers are of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from onedomain.reporting.reproduce.columns import RunScores
from onedomain.reporting.reproduce.declare import Scale, Table
from onedomain.reporting.reproduce.plan import benchmark_at
from onedomain.runs.commandline import onedomain, what_to_train

MOST_NAMED = 8  # domains of a note
Rivals = Mapping[tuple[str, int, str], RunScores]  # runs by benchmark, seed or draw, and the key of their row


def notes_on(
    table: Table,
    scale: Scale,
    targets: Sequence[str],
    by_row: Sequence[Sequence[RunScores]],
    rivals: Rivals,
    scored: Sequence[str],
    data: Sequence[Mapping[str, Any]],
    steps: Mapping[str, int],
) -> Iterable[str]:
    """`by_row` are the runs of each row, `scored` the targets that all of them have, `data` all domains of theirs."""
    runs = [run for of_row in by_row for run in of_row]
    if scale.reduced:
        yield f"Reduced protocol: {scale.note}. The paper's numbers are of its whole protocol."
    yield from _missing_baselines(table, scale, rivals, steps)
    titles = {column.name: column.title for column in table.columns if column.over == (column.name,)}
    reported = {domain for column in table.columns for domain in column.over}
    shown = [name for name in targets if name in reported]
    absent = {name: any(name in run.records for run in runs) for name in shown if name not in scored}
    for by_some, remark in ((False, ""), (True, " by every run")):
        names = [titles.get(name, name) for name in absent if absent[name] is by_some]
        if names:
            yield f"{_named(names, len(shown))}: not scored{remark}, for want of data."
    if absent and scored and any(len(column.over) > 1 for column in table.columns):
        names = [titles.get(name, name) for name in shown if name in scored]
        over = f"the {len(names)} others" if len(names) > MOST_NAMED else ", ".join(names)
        yield f"The averages, the paper's too, are over {over}."
    remarks: dict[str, list[str]] = {}
    for each in data:
        if each["note"] and each["domain"] in shown:
            remarks.setdefault(each["note"], []).append(titles.get(each["domain"], each["domain"]))
    for remark, names in remarks.items():
        yield f"{_named(names, len(shown))}: {remark}."
    if len({run.number for run in runs}) > 1:
        yield f"Numbers after ± are sample standard deviations over {'draws' if table.few_shot else 'seeds'}."
    yield from table.notes


def _named(names: Sequence[str], of: int) -> str:
    """
    >>> _named(["SVHN", "SYN"], 4), _named(["x"] * 95, 95), _named(list("abcdefghij"), 95)
    ('SVHN, SYN', 'All 95 domains', 'a, b, c, d, e, f, g and 3 others')
    """
    if len(names) <= MOST_NAMED:
        return ", ".join(names)
    if len(names) == of:
        return f"All {of} domains"
    return f"{', '.join(names[: MOST_NAMED - 1])} and {len(names) - MOST_NAMED + 1} others"


def _missing_baselines(table: Table, scale: Scale, rivals: Rivals, steps: Mapping[str, int]) -> Iterable[str]:
    """Which runs are missing that columns are relative to, and the commands that make them."""
    by_key: dict[str, list[str]] = {}
    for column in table.columns:
        if column.baseline:
            by_key.setdefault(column.baseline, []).append(column.title)
    for baseline in (row for row in table.rows if row.key in by_key):
        where = table.benchmark_of(baseline)
        changes = scale.changes(baseline.method, baseline.settings, None)
        if scale.share < 1 and baseline.name in steps:
            changes["steps"] = steps[baseline.name]
        for seed in sorted({number for name, number, _ in rivals if name == where}):
            if (where, seed, baseline.key) not in rivals:
                network = benchmark_at(where, scale).network
                command = what_to_train(baseline.method, seed, changes, benchmark=where, network=network)
                yield (
                    f"{', '.join(by_key[baseline.key])}: the run of {baseline.label} with seed {seed} is missing or "
                    f"failed; make it with: {onedomain('train', command, ['--out', f'runs/{baseline.name}-{seed}'])}"
                )
