"""How well a run holds up under corruptions: accuracy per corruption, severity and category, mCE and RmCE.

Made from records alone, the rows of results.jsonl. As in the paper, mCE and RmCE are relative to the errors of ERM
under the same settings, not to those of AlexNet as for ImageNet-C.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from onedomain.data.corruptions import CATEGORIES, KINDS, SEVERITIES

Row = Mapping[str, Any]


def mean_corruption_error(
    errors: Mapping[str, float],
    erm: Mapping[str, float],
    clean: float | None = 0.0,
    erm_clean: float | None = 0.0,
) -> float | None:
    """mCE: the mean over corruptions of the error, divided by ERM's. None if ERM makes no error on one of them.

    With the errors on clean images it is RmCE, of what the errors are above those. None if one of them is not known.

    >>> mean_corruption_error({"fog": 0.2, "snow": 0.3}, {"fog": 0.4, "snow": 0.3})
    0.75
    >>> round(mean_corruption_error({"fog": 0.2, "snow": 0.3}, {"fog": 0.3, "snow": 0.5}, 0.1, 0.1), 4)
    0.5
    """
    if not errors or clean is None or erm_clean is None or any(erm[kind] <= erm_clean for kind in errors):
        return None
    return fmean((error - clean) / (erm[kind] - erm_clean) for kind, error in errors.items())


@dataclass(frozen=True)
class Robustness:
    """Accuracies of one run: on clean images, and of each corruption at each severity that was scored."""

    clean: float | None
    accuracy: Mapping[str, Mapping[int, float]]
    notes: tuple[str, ...] = ()  # of the targets, such as "regenerated"

    def of_kind(self, kind: str, severity: int | None = None) -> float | None:
        """A corruption's accuracy at one severity, or its mean over all five; None if some of it is missing."""
        scored = self.accuracy.get(kind, {})
        wanted = SEVERITIES if severity is None else (severity,)
        return fmean(scored[each] for each in wanted) if all(each in scored for each in wanted) else None

    def of_kinds(self, kinds: Sequence[str] = KINDS, severity: int | None = None) -> float | None:
        """The mean over those of the corruptions that were scored; None if none was."""
        known = self._known(kinds, severity)
        return fmean(known.values()) if known else None

    def of_categories(self, severity: int | None = None) -> float | None:
        """The mean over the four categories, each the mean over its corruptions, as later papers report it."""
        means = [self.of_kinds(kinds, severity) for kinds in CATEGORIES.values()]
        known = [mean for mean in means if mean is not None]
        return fmean(known) if len(known) == len(CATEGORIES) else None

    def relative_to(self, erm: Robustness, severity: int | None = None) -> dict[str, float | None]:
        """mCE and RmCE over the corruptions that both runs were scored on; None where they are not defined."""
        own, other = (each._known(KINDS, severity) for each in (self, erm))
        errors = {kind: 1 - own[kind] for kind in KINDS if kind in own and kind in other}
        erm_errors = {kind: 1 - other[kind] for kind in errors}
        clean = [None if each.clean is None else 1 - each.clean for each in (self, erm)]
        return {
            "mce": mean_corruption_error(errors, erm_errors),
            "rmce": mean_corruption_error(errors, erm_errors, *clean),
        }

    def _known(self, kinds: Sequence[str], severity: int | None) -> dict[str, float]:
        values = {kind: self.of_kind(kind, severity) for kind in kinds}
        return {kind: value for kind, value in values.items() if value is not None}


def from_records(rows: Iterable[Row], benchmark: str) -> Robustness:
    """The robustness of one run from its records; those of other benchmarks and metrics are passed over.

    Records of corrupted domains say which corruption and severity; the one other domain is the clean images.
    """
    clean: float | None = None
    accuracy: dict[str, dict[int, float]] = {}
    notes: list[str] = []
    for row in rows:
        if row.get("metric") != "accuracy" or row.get("benchmark") != benchmark:
            continue
        if "corruption" in row:
            accuracy.setdefault(row["corruption"], {})[int(row["severity"])] = float(row["value"])
            if row.get("note") and row["note"] not in notes:
                notes.append(row["note"])
        else:
            clean = float(row["value"])
    return Robustness(clean, accuracy, tuple(notes))
