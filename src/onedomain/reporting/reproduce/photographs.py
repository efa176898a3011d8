"""The tables of photographs, of which the paper has none: fine-tuned on each domain in turn, scored on the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from onedomain.reporting.reproduce.columns import average_over, score
from onedomain.reporting.reproduce.declare import Row, Scale, Table

_ROUNDS = {"round_every": 10, "round_size": 50}
_QUICK = Scale(
    "quick",
    share=0.1,
    settings={
        "gud": _ROUNDS,
        "me-ada": _ROUNDS,
        "sdg": {"warm_up": 10, "domain_every": 10, "domain_size": 50, "wae_epochs": 2},
        "uncertain-sdg": {"warm_up": 10},
    },
    note="a tenth of each method's steps; domains of 50 images instead of 200, auto-encoders trained for 2 epochs "
    "instead of 20",
)


def _from_each(name: str, title: str, letters: Mapping[str, str], methods: tuple[Row, ...]) -> Table:
    """`letters` are those of the domains; the average is over all pairs of source and target."""
    tasks = {source: f"{name}-{source.replace('_', '-')}" for source in letters}
    tasks[next(iter(letters))] = name
    columns = tuple(
        score(f"{task}/{target}", f"{letters[source]}→{letters[target]}", f"from {source}")
        for source, task in tasks.items()
        for target in letters
        if target != source
    )
    return Table(
        name=name,
        title=title,
        benchmark=name,
        rows=tuple(replace(row, tasks=tuple(tasks.values())) for row in methods),
        columns=(*columns, replace(average_over(*columns), group="all pairs")),
        notes=("; ".join(f"{letter}: {domain}" for domain, letter in letters.items()) + ".",),
        scales=(_QUICK,),
    )


def photograph_tables(methods: tuple[Row, ...]) -> tuple[Table, ...]:
    """One per data set, with these methods as rows."""
    return (
        _from_each(
            "office-caltech",
            "Photographs of Office-Caltech-10: a pretrained network fine-tuned on one domain",
            {"amazon": "A", "caltech10": "C", "dslr": "D", "webcam": "W"},
            methods,
        ),
        _from_each(
            "pacs",
            "Photographs, art, cartoons and sketches of PACS: a pretrained network fine-tuned on one domain",
            {"photo": "P", "art_painting": "A", "cartoon": "C", "sketch": "S"},
            methods,
        ),
    )
