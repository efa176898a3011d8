"""What the paper reports, as data: Peng, Qiao and Zhao, *Out-of-Domain Generalization from a Single Source*.

Accuracies and mIoU are percent, `training_parameters` are millions, `minutes` are the paper's minutes of training on
its own machine, `mce` and `rmce` are relative to its ERM. A method is named as here, and a variant of it as
`sdg:beta=0`: the settings that differ from the method's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import fmean

from onedomain.data.corruptions import KINDS
from onedomain.runs.commandline import setting_text

AVERAGE = "average"

_DOMAINS = ("svhn", "mnist-m", "syn", "usps", AVERAGE)

# Table 1, Digits, its average as printed.
_DIGITS = {
    method: dict(zip(_DOMAINS, values, strict=True))
    for method, values in {
        "erm": (27.83, 52.72, 39.65, 76.94, 49.29),
        "ccsa": (25.89, 49.29, 37.31, 83.72, 49.05),
        "d-sne": (26.22, 50.98, 37.83, 93.16, 52.05),
        "jigen": (33.80, 57.80, 43.79, 77.15, 53.14),
        "gud": (35.51, 60.41, 45.32, 77.26, 54.62),
        "sdg:beta=0": (37.33, 61.43, 45.58, 77.37, 55.43),  # w/o L_relax
        "sdg:alpha=0": (41.36, 67.28, 47.94, 78.22, 58.70),  # w/o L_const
        "sdg:meta=false": (41.45, 67.86, 48.76, 76.12, 58.55),  # w/o ML
        "sdg": (42.55, 67.94, 48.95, 78.53, 59.49),
        "uncertain-sdg": (43.32, 67.38, 57.14, 77.39, 61.31),
    }.items()
}

# Table 3, CIFAR-10-C: mean accuracy over the corruptions, for each level of severity.
_SEVERITY = {
    method: {f"severity-{level}": value for level, value in enumerate(values, start=1)}
    for method, values in {
        "erm": (87.8, 81.5, 75.5, 68.2, 56.1),
        "gud": (88.3, 83.5, 77.6, 70.6, 58.3),
        "sdg": (90.5, 86.8, 82.5, 76.4, 65.6),
    }.items()
}

# Table 4, CIFAR-10-C: every corruption at severity 5, in the paper's order, which is that of KINDS.
_WORST = (*(f"{kind}-5" for kind in KINDS), AVERAGE, "mce", "rmce")
_CORRUPTIONS = {
    method: dict(zip(_WORST, map(float, values.split()), strict=True))
    for method, values in {
        "erm": "65.92 74.36 61.57  59.97 53.71 49.44 30.74 63.81  41.31 35.41 25.65 29.01 "
        "69.90 41.07 75.36 72.40 91.25 89.09 36.87  56.15 1.00 1.00",
        "ccsa": "66.94 74.55 61.49  61.96 56.11 48.46 32.22 64.73  40.12 33.79 24.56 27.85 "
        "69.68 40.94 77.91 72.36 91.00 89.42 35.83  56.31 0.99 0.99",
        "d-sne": "65.99 75.46 62.25  58.47 53.71 50.48 33.06 63.70  45.30 39.93 27.95 34.02 "
        "70.20 38.46 73.40 73.33 90.90 89.27 36.28  56.96 0.99 1.00",
        "gud": "68.29 76.75 69.94  62.95 56.41 53.45 38.33 63.93  38.45 36.87 22.26 32.43 "
        "74.22 53.34 80.27 74.64 89.91 82.91 31.55  58.26 0.97 0.95",
        "sdg:beta=0": "66.99 80.09 74.93  54.15 44.67 60.57 30.53 57.06  59.88 59.18 43.46 55.07 "
        "76.45 53.13 80.75 73.85 90.86 87.01 27.83  61.92 0.90 0.86",
        "sdg:meta=false": "67.68 80.91 76.20  65.70 56.87 62.14 41.20 63.86  60.01 59.63 40.04 55.70 "
        "77.62 52.49 81.02 75.54 90.69 86.58 26.30  64.22 0.85 0.80",
        "sdg": "69.36 80.59 76.66  68.04 61.18 61.59 47.34 64.23  60.88 60.58 45.18 56.88 "
        "77.14 52.25 80.62 75.61 90.78 87.62 29.71  65.59 0.82 0.77",
    }.items()
}

_PLACES = ("new-york", "old-town")
_CONDITIONS = tuple(
    f"{place}-{condition}" for place in _PLACES for condition in ("dawn", "fog", "night", "spring", "winter")
)

# Table 5, SYNTHIA, mIoU, its average as printed; by the benchmark of its source.
_SYNTHIA = {
    f"synthia-{source}": {
        method: dict(zip((*_CONDITIONS, AVERAGE), values, strict=True)) for method, values in methods.items()
    }
    for source, methods in {
        "dawn": {
            "erm": (27.80, 2.73, 0.93, 6.80, 1.65, 52.78, 31.37, 15.86, 33.78, 13.35, 18.70),
            "gud": (27.14, 4.05, 1.63, 7.22, 2.83, 52.80, 34.43, 18.19, 33.58, 14.68, 19.66),
            "sdg": (29.10, 4.43, 4.75, 14.13, 4.97, 54.28, 36.04, 23.19, 37.53, 14.87, 22.33),
            "uncertain-sdg": (29.31, 7.62, 2.84, 12.70, 10.18, 54.89, 37.03, 25.30, 37.16, 17.71, 23.47),
        },
        "fog": {
            "erm": (17.24, 34.80, 12.36, 26.38, 11.81, 33.73, 55.03, 26.19, 41.74, 12.32, 27.16),
            "gud": (18.75, 35.58, 12.77, 26.02, 13.05, 37.27, 56.69, 28.06, 43.57, 13.59, 28.53),
            "sdg": (21.74, 32.00, 9.74, 26.40, 13.28, 42.79, 56.60, 31.79, 42.77, 12.85, 29.00),
            "uncertain-sdg": (23.03, 36.21, 13.48, 27.64, 14.23, 43.08, 57.44, 31.04, 44.62, 13.13, 30.39),
        },
        "spring": {
            "erm": (26.75, 26.41, 18.22, 32.89, 24.60, 51.72, 51.85, 35.65, 54.00, 28.13, 35.02),
            "gud": (28.84, 29.67, 20.85, 35.32, 27.87, 52.21, 52.87, 35.99, 55.30, 29.58, 36.85),
            "sdg": (29.70, 31.03, 22.22, 38.19, 28.29, 53.57, 51.83, 38.98, 55.63, 25.29, 37.47),
            "uncertain-sdg": (30.18, 31.75, 22.32, 38.64, 28.81, 52.98, 51.96, 40.17, 55.17, 26.34, 37.83),
        },
    }.items()
}

# Table 6, few-shot adaptation, by task; the unsupervised ones, and FADA and CCSA, as the paper quotes them.
_TASKS = ("few-shot-usps-mnist/mnist", "few-shot-mnist-svhn/svhn", "few-shot-svhn-mnist/mnist", AVERAGE)
_FEW_SHOT = {
    method: {task: value for task, value in zip(_TASKS, values, strict=True) if value is not None}
    for method, values in {
        "i2i": (92.20, None, 92.10, None),
        "dirt-t": (None, 54.50, 99.40, None),
        "se": (98.07, 13.96, 99.18, 70.40),
        "sbada": (97.60, 61.08, 76.14, 78.27),
        "g2a": (90.80, None, 92.40, None),
        "sdg>fada-7": (91.50, 47.00, 87.20, 75.23),
        "sdg>ccsa-10": (95.71, 37.63, 94.57, 75.97),
        "sdg": (71.19, 36.61, 60.14, 55.98),
        "sdg>fine-tune-7": (92.33, 56.33, 89.90, 79.52),
        "sdg>fine-tune-10": (93.67, 57.16, 91.81, 80.88),
        "uncertain-sdg>fine-tune-7": (92.97, 58.12, 89.30, 80.13),
        "uncertain-sdg>fine-tune-10": (93.16, 59.77, 91.67, 81.53),
    }.items()
}

PAPER: Mapping[str, Mapping[str, Mapping[str, float]]] = {
    "digits": _DIGITS,
    # The three ablations are rows of Table 1.
    "ablation": _DIGITS,
    # Table 2. Its accuracy is the average of Table 1, rounded; the domains behind it are those of Table 1, and so is
    # all of ERM, which Table 2 leaves out.
    "efficiency": {
        "erm": _DIGITS["erm"],
        "sdg": {**_DIGITS["sdg"], AVERAGE: 59.5, "training_parameters": 7.02, "minutes": 23.7},
        "uncertain-sdg": {**_DIGITS["uncertain-sdg"], AVERAGE: 61.3, "training_parameters": 5.27, "minutes": 16.4},
    },
    # The figure of K, α and β has no printed values. Its summits (K = 3, α = 1, β = 2,000) are SDG itself; α = 0 and
    # β = 0 are rows of Table 1.
    "curves": _DIGITS,
    "cifar-severity": _SEVERITY,
    "cifar-corruptions": _CORRUPTIONS,
    **_SYNTHIA,
    "few-shot": _FEW_SHOT,
}


def paper_value(table: str, method: str, column: str) -> float | None:
    """What the paper's table says of a method, or None if it says nothing.

    >>> paper_value("digits", "sdg", "svhn"), paper_value("ablation", "sdg:beta=0", "average")
    (42.55, 55.43)
    >>> paper_value("digits", "randconv", "svhn") is None
    True
    """
    return PAPER.get(table, {}).get(method, {}).get(column)


def paper_average(table: str, method: str, domains: Iterable[str]) -> float | None:
    """The paper's average over some of its domains: as printed over all, else the plain mean; None if one is missing.

    >>> paper_average("digits", "sdg", ["svhn", "mnist-m", "usps"])
    63.01
    """
    chosen = list(domains)
    values = [paper_value(table, method, domain) for domain in chosen]
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return None
    everything = set(PAPER[table][method]).intersection((*_DOMAINS, *_CONDITIONS, *_TASKS)) - {AVERAGE}
    return paper_value(table, method, AVERAGE) if set(chosen) == everything else round(fmean(known), 2)


def variant(method: str, settings: Mapping[str, object]) -> str:
    """The name of a method with some settings changed, as the paper's numbers are looked up.

    >>> variant("sdg", {}), variant("sdg", {"beta": 0.0}), variant("sdg", {"meta": False})
    ('sdg', 'sdg:beta=0', 'sdg:meta=false')
    """
    if not settings:
        return method
    return f"{method}:{','.join(f'{name}={setting_text(value)}' for name, value in sorted(settings.items()))}"
