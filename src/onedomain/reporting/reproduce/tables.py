"""The tables that `onedomain reproduce` makes. To add one: declare it here, put the paper's numbers into `paper.py`."""

from __future__ import annotations

from dataclasses import replace

from onedomain.data.corruptions import CATEGORIES, KINDS, SEVERITIES
from onedomain.data.datasets.synthia import CONDITIONS, SOURCE_CONDITIONS
from onedomain.methods import method_names
from onedomain.reporting.reproduce.columns import (
    CLEAN,
    WORST,
    Average,
    Fact,
    MeanOf,
    RelativeError,
    average_over,
    score,
)
from onedomain.reporting.reproduce.declare import Adapting, Row, Scale, Table
from onedomain.reporting.reproduce.paper import AVERAGE
from onedomain.reporting.reproduce.photographs import photograph_tables

_DIGITS = (score("svhn", "SVHN"), score("mnist-m", "MNIST-M"), score("syn", "SYN"), score("usps", "USPS"))
_DIGITS_AVERAGE = average_over(*_DIGITS)
_ERM, _SDG, _UNCERTAIN = Row("ERM", "erm"), Row("SDG", "sdg"), Row("Uncertain SDG", "uncertain-sdg")
_WITHOUT_RELAX = Row("SDG without L_relax", "sdg", {"beta": 0.0})
_WITHOUT_META = Row("SDG without meta-learning", "sdg", {"meta": False})
_GUD = Row("GUD", "gud")
# Methods that the paper compares with; its second system, and what came after it.
_BEFORE = (_ERM, Row("CCSA", "ccsa"), Row("d-SNE", "d-sne"), Row("JiGen", "jigen"), _GUD)
_AFTER = (
    _UNCERTAIN,
    Row("ME-ADA", "me-ada"),
    Row("AugMix", "augmix"),
    Row("RandConv", "randconv"),
    Row("Pro-RandConv", "pro-randconv"),
    Row("Meta-RandConv", "meta-randconv"),
    Row("Moved RandConv", "moved-randconv"),
)
_SYNTHIA = tuple(
    score(f"{place}-{condition}", f"{short} {condition}")
    for place, short in (("new-york", "NY"), ("old-town", "OT"))
    for condition in CONDITIONS
)
_SEGMENTATION_QUICK = Scale(
    "quick",
    share=0.02,
    network="fcn-small",
    settings={
        "gud": {"round_every": 30, "round_size": 60},
        "sdg": {"warm_up": 40, "domain_every": 40, "domain_size": 60, "wae_epochs": 5},
        "uncertain-sdg": {"warm_up": 20},
    },
    note="the network fcn-small instead of FCN-32s on ResNet-50, a fiftieth of each method's steps, domains and rounds "
    "of 60 images instead of 900, auto-encoders trained for 5 epochs instead of 200",
)


_FEW_SHOT = (
    score("few-shot-usps-mnist/mnist", "U→M"),
    score("few-shot-mnist-svhn/svhn", "M→S"),
    score("few-shot-svhn-mnist/mnist", "S→M"),
)
_TASKS = tuple(column.name.partition("/")[0] for column in _FEW_SHOT)
_SCRATCH, _TUNED, _UNSUPERVISED = "from scratch on source and shots", "trained, then fine-tuned", "unsupervised"
_OURS = "the same with vary=1 invert=0.25: ours"


_FEW_SHOT_QUICK = Scale(
    "quick",
    share=0.1,
    settings={
        "sdg": {"domain_size": 1000, "wae_epochs": 5},
        "uncertain-sdg": {"warm_up": 10},
        "fada": {"pretrain_steps": 100, "discriminator_steps": 10},
    },
    note="a tenth of each method's steps, domains of 1,000 images instead of 5,000, auto-encoders trained for 5 epochs "
    "instead of 20 (MNIST has 60,000 images here)",
)


def _few_shot(label: str, method: str, *shots: int) -> tuple[Row, ...]:
    """A method as it was trained, and fine-tuned with so many images per class."""
    trained = Row(label, method, section=_TUNED, tasks=_TASKS)
    return (trained, *(replace(trained, adaptation=Adapting("fine-tune", count)) for count in shots))


def _varied(rows: tuple[Row, ...]) -> tuple[Row, ...]:
    """Those of the rows that are adapted, with the drawn images moved, relit and in part inverted."""
    return tuple(
        replace(row, section=_OURS, adaptation=replace(row.adaptation, settings={"vary": 1.0, "invert": 0.25}))
        for row in rows
        if row.adaptation
    )


# From scratch nothing is taken over from the trained run but its network and its source.
_ADAPTED = (
    Row("FADA", "sdg", section=_SCRATCH, tasks=_TASKS, adaptation=Adapting("fada", 7)),
    Row("CCSA", "sdg", section=_SCRATCH, tasks=_TASKS, adaptation=Adapting("ccsa", 10)),
    *_few_shot("SDG", "sdg", 7, 10),
    *_few_shot("Uncertain SDG", "uncertain-sdg", 7, 10),
)


def _curve(symbol: str, setting: str, values: tuple[float, ...], usual: float) -> tuple[Row, ...]:
    """SDG over one setting; at the usual value it is SDG itself, run once for all curves."""
    return tuple(
        Row(f"{symbol} = {value:,g}", "sdg", {} if value == usual else {setting: value}, section=symbol)
        for value in values
    )


def _and_others(*rows: Row) -> tuple[Row, ...]:
    """The rows, and below them a row for each method that is in none of them."""
    there = {row.method for row in rows}
    return (*rows, *(Row(name, name, section="others") for name in method_names() if name not in there))


_CIFAR_ROWS = _and_others(*_BEFORE, _WITHOUT_RELAX, _WITHOUT_META, _SDG, *_AFTER)
_CIFAR_SCALES = (
    Scale(
        "quick",
        benchmark="cifar10-c-lite",
        note="cifar10-c-lite in the place of cifar10-c: 6,000 training images, a small network, 1,500 steps, and 1,000 "
        "images under each corruption",
    ),
)


def _corrupted(kinds: tuple[str, ...], severity: int) -> tuple[str, ...]:
    return tuple(f"{kind}-{severity}" for kind in kinds)


_LEVELS = tuple(
    Average(f"severity-{level}", f"level {level}", _corrupted(KINDS, level), decimals=1) for level in SEVERITIES
)
_ALL_WORST = _corrupted(KINDS, WORST)
_CATEGORIES = {
    category: Average(category, f"mean of {category}", _corrupted(kinds, WORST), group=category)
    for category, kinds in CATEGORIES.items()
}
_IN_SHORT = "all corruptions"


_BY_CATEGORY = tuple(
    column
    for category, kinds in CATEGORIES.items()
    for column in (*(score(f"{kind}-{WORST}", kind, category) for kind in kinds), _CATEGORIES[category])
)


TABLES = {
    table.name: table
    for table in (
        Table(
            name="digits",
            title="Single domain generalization on Digits, trained on MNIST (the paper's Table 1)",
            benchmark="digits",
            rows=_and_others(*_BEFORE, _SDG, *_AFTER),
            columns=(*_DIGITS, _DIGITS_AVERAGE),
        ),
        Table(
            name="efficiency",
            title="Size, time and memory of training on Digits (the paper's Table 2)",
            benchmark="digits",
            rows=(_ERM, _SDG, _UNCERTAIN),
            columns=(
                Fact("training_parameters", "parameters", of="training_parameters", divisor=1e6, unit="M", decimals=2),
                Fact("minutes", "time", of="train_seconds", divisor=60, unit="min"),
                Fact("memory", "peak memory", of="peak_memory_mb", unit="MB", decimals=0),
                _DIGITS_AVERAGE,
            ),
            notes=(
                "Parameters are those that are trained, auto-encoder and auxiliary networks included.",
                "The paper's minutes are of its own machine: compare them with each other, not with ours.",
                "Runs beside each other slow each other down: --jobs 1 gives the times of a machine that does nothing "
                "else. A time holds all of training, domains included, and no scoring.",
            ),
        ),
        Table(
            name="ablation",
            title="SDG without its parts on Digits (three rows of the paper's Table 1)",
            benchmark="digits",
            rows=(_WITHOUT_RELAX, Row("SDG without L_const", "sdg", {"alpha": 0.0}), _WITHOUT_META, _SDG),
            columns=(*_DIGITS, _DIGITS_AVERAGE),
        ),
        Table(
            name="curves",
            title="SDG over K, α and β on Digits (the paper's figure of its hyper-parameters)",
            benchmark="digits",
            rows=(
                *_curve("K", "domains", (1, 2, 3, 4, 5), usual=3),
                *_curve("α", "alpha", (0.0, 0.1, 1.0, 10.0), usual=1.0),
                *_curve("β", "beta", (0.0, 500.0, 1000.0, 2000.0, 4000.0), usual=2000.0),
            ),
            columns=(*_DIGITS, _DIGITS_AVERAGE),
            notes=(
                "The paper draws these curves and prints no value of them; it says that the best are at K = 3, α = 1 "
                "and β = 2,000, which is SDG of its Table 1. α = 0 and β = 0 are rows of that table. The other points "
                "are our choice.",
            ),
        ),
        Table(
            name="cifar-severity",
            title="Accuracy by severity on CIFAR-10-C, trained on clean CIFAR-10 (the paper's Table 3)",
            benchmark="cifar10-c",
            rows=_CIFAR_ROWS,
            columns=(*_LEVELS, MeanOf("average", "all levels", columns=_LEVELS, decimals=1)),
            notes=(
                "A level is the mean over 19 corruptions. The paper's deviations over seeds grow from level 1 to 5: "
                "ERM 0.1 to 0.8, GUD 0.6 to 2.5, SDG 0.3 to 1.2. It prints no mean of all levels; that is of its five.",
            ),
            scales=_CIFAR_SCALES,
        ),
        Table(
            name="cifar-corruptions",
            title="Accuracy by corruption on CIFAR-10-C at severity 5, trained on clean CIFAR-10 (the paper's Table 4)",
            benchmark="cifar10-c",
            rows=_CIFAR_ROWS,
            columns=(
                Average(AVERAGE, "mean of 19 corruptions", _ALL_WORST, group=_IN_SHORT),
                MeanOf("categories", "mean of 4 categories", columns=tuple(_CATEGORIES.values()), group=_IN_SHORT),
                RelativeError("mce", "mCE", _ALL_WORST, group=_IN_SHORT),
                RelativeError("rmce", "RmCE", _ALL_WORST, group=_IN_SHORT),
                score(CLEAN, "clean", _IN_SHORT),
                *_BY_CATEGORY,
            ),
            notes=(
                "mCE and RmCE are relative to ERM's run of the same seed; lower is better. They are not defined if ERM "
                "makes no error under a corruption or, for RmCE, none that it does not make on clean images.",
                "The paper prints no mean of a category and none of the four: those are of its corruptions.",
            ),
            scales=_CIFAR_SCALES,
        ),
        Table(
            name="segmentation",
            title="Semantic segmentation on SYNTHIA, trained on a highway in one condition, mIoU (the paper's Table 5)",
            benchmark="synthia-dawn",
            rows=tuple(
                replace(row, section=f"Highway/{condition.capitalize()}", benchmark=f"synthia-{condition}")
                for condition in SOURCE_CONDITIONS
                for row in (_ERM, _GUD, _SDG, _UNCERTAIN)
            ),
            columns=(*_SYNTHIA, average_over(*_SYNTHIA)),
            metric="miou",
            notes=(
                "NY is the New York-like city, OT the old European town. mIoU is over the classes that a domain has, "
                "void excluded, counted on frames of 192×320; the paper says neither which classes nor which size it "
                "counts.",
            ),
            scales=(_SEGMENTATION_QUICK,),
        ),
        Table(
            name="few-shot",
            title="Few-shot adaptation between MNIST (M), USPS (U) and SVHN (S) (the paper's Table 6)",
            benchmark="few-shot-digits",
            rows=(
                *(
                    Row(label, label.lower(), section=_UNSUPERVISED, not_run="all, unlabelled")
                    for label in ("I2I", "DIRT-T", "SE", "SBADA", "G2A")
                ),
                *_ADAPTED,
                *_varied(_ADAPTED),
            ),
            columns=(*_FEW_SHOT, average_over(*_FEW_SHOT)),
            notes=(
                "Shots are images per class. All draws of a row are adapted from one trained run, of seed 0; steps and "
                "minutes of adapted rows are those of adapting alone.",
                "The unsupervised systems are not run: what they learn without labels is not in the library. The paper "
                "seems to quote them, FADA and CCSA from other papers, with other networks.",
                "The paper prints no row of Uncertain SDG without shots.",
                "In the last section the drawn images are moved, relit and in part inverted at every step, which the "
                "paper does not do: its numbers stand above.",
            ),
            scales=(_FEW_SHOT_QUICK,),
        ),
        *photograph_tables((_ERM, _SDG, *_AFTER)),
    )
}

SCALES = {
    scale.name: scale
    for scale in (
        Scale(
            "quick",
            share=0.1,
            settings={
                "sdg": {"domain_size": 1000},
                "gud": {"round_size": 1000},
                "me-ada": {"round_size": 1000},
                "uncertain-sdg": {"warm_up": 10},
            },
            note="a tenth of each method's steps; domains and rounds of 1,000 images instead of 5,000",
        ),
        Scale("full"),
    )
}
