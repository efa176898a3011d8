"""The tables of a tuning: its trials, and what each setting mattered."""

from __future__ import annotations

from dataclasses import replace

from onedomain.reporting.names import method_title
from onedomain.reporting.table import BEST, GAP, Cell, Column, Row, Table, number, percent, text
from onedomain.runs.commandline import setting_text
from onedomain.runs.trials import COMPLETE, PRUNED, Trial, Tuning

IMPORTANT = 5  # settings that the table of trials shows, each in a column


def tuning_tables(tuning: Tuning, identity: str = "trials") -> tuple[Table, ...]:
    """The trials, the best first, and the settings, the most important first."""
    order = sorted(tuning.usual, key=lambda name: -tuning.importance.get(name, 0.0))
    tables = _trials(tuning, order[:IMPORTANT]), _settings(tuning, order)
    return tuple(replace(table, id=f"{identity}-{number}") for number, table in enumerate(tables))


def summary(tuning: Tuning) -> str:
    """Best, median and usual in one line."""
    if not tuning.complete:
        return "no trial is complete"
    best, usual = tuning.complete[0], tuning.of_usual
    parts = [f"best {_percent(best.score)} (trial {best.number})", f"median {_percent(tuning.median)}"]
    return ", ".join([*parts, f"usual settings {_percent(usual)}"] if usual is not None else parts)


def _trials(tuning: Tuning, shown: list[str]) -> Table:
    done = tuning.complete
    others = sorted((each for each in tuning.trials if each not in done), key=lambda each: (each.state, each.number))
    others.sort(key=lambda each: each.state != PRUNED)
    columns = [Column("score", unit="%"), Column("state", number=False), Column("time", unit="min")]
    columns += [Column(name, number=False) for name in shown]
    rows = [_row(trial, tuning, shown, best=trial is done[0] if done else False) for trial in [*done, *others]]
    on = tuning.benchmark or "your own images"
    counts = [f"{sum(each.state == state for each in tuning.trials)} {state}" for state in (COMPLETE, PRUNED, "failed")]
    notes = [
        f"{summary(tuning)}; {', '.join(counts)}.",
        f"Score: mean {tuning.metric} of {tuning.objective} on held-out source images, over "
        f"{tuning.seeds} {'seed' if tuning.seeds == 1 else 'seeds'}; no target was read. That of a pruned trial is the "
        "last that was measured. The best of many is the best by chance as well: measure it anew.",
    ]
    title = f"Settings of {method_title(tuning.method)} on {on}: {len(tuning.trials)} trials of {tuning.steps:,} steps"
    return Table(title, "trial", columns, rows, notes)


def _row(trial: Trial, tuning: Tuning, shown: list[str], best: bool) -> Row:
    score = percent(trial.score)
    if best:
        score = Cell(score.text, score.value, mark=BEST)
    values = [trial.searched.get(name) for name in shown]
    cells = [score, text(trial.state), number(trial.seconds / 60, 1), *(text(_short(value)) for value in values)]
    usual = trial.searched == tuning.usual
    return Row(str(trial.number), cells, badge="usual" if usual else "", note=trial.error)


def _settings(tuning: Tuning, order: list[str]) -> Table:
    best = tuning.complete[0].searched if tuning.complete else {}
    rows = [
        Row(
            name,
            [
                percent(tuning.importance.get(name), 1),
                text(_short(best.get(name))),
                text(_short(tuning.usual[name])),
            ],
        )
        for name in order
    ]
    columns = [Column("what it mattered", unit="%"), Column("best", number=False), Column("usual", number=False)]
    note = "What it mattered: its share of the variance of the score over complete trials, by fANOVA."
    if not tuning.importance:
        note = "What each mattered is not known: too few trials are complete, or all score the same."
    return Table("What mattered", "setting", columns, rows, [note])


def _short(value: object) -> str:
    if value is None:
        return GAP
    return f"{value:.4g}" if isinstance(value, float) else setting_text(value)


def _percent(value: float | None) -> str:
    return GAP if value is None else f"{100 * value:.2f}%"
