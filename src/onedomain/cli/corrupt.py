"""`onedomain corrupt`: corrupt the user's own images. It needs no torch, and neither do its processes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from onedomain.cli import options as shared
from onedomain.cli.output import tell

GROUP = shared.AVAILABLE


def _corruption_names() -> list[str]:
    from onedomain.data.corruptions import KINDS

    return [*KINDS, "all"]


@dataclass(frozen=True)
class Options:
    folder: str = shared.argument("FOLDER", "Your images; sub-folders and names are kept.")
    kind: str = shared.option(
        "--kind", "A corruption, such as fog; or all.", complete=_corruption_names, default=shared.REQUIRED
    )
    out: str = shared.option(
        "--out DIR", "Where the corrupted images go: a new or empty folder.", default=shared.REQUIRED
    )
    severity: str = shared.option("--severity", "1 (mild) to 5 (severe), or all.", default="3")
    seed: int = shared.option("--seed", "Decides everything random.", default=0)
    constants: str | None = shared.option("--constants", "cifar10-c or imagenet-c; by each image's size by default.")
    data: str | None = shared.data()


def corrupt(options: Options) -> None:
    """Corrupt your own images as CIFAR-10-C and ImageNet-C do: to see how a model would hold up.

    Stopped, the same command goes on. Frost needs its overlays in the folder frost of --data.
    """
    from onedomain.data import data_folder
    from onedomain.data.corruptions import SETS, check_kind, makeable
    from onedomain.data.corruptions.folder import corrupt_folder, parse_severities
    from onedomain.data.progress import say
    from onedomain.errors import UserError, unknown

    overlays = data_folder(options.data) / "frost"
    makes, left_out = makeable(overlays)
    kinds = makes if options.kind == "all" else [check_kind(options.kind, field="--kind")]
    if not set(kinds) <= set(makes):
        raise left_out[0]
    if options.constants is not None and options.constants not in SETS:
        raise unknown("--constants", options.constants, SETS)
    if not 0 <= options.seed < 2**32:
        raise UserError("--seed", f"got {options.seed}", "a whole number from 0 to 4294967295")
    used = corrupt_folder(
        Path(options.folder),
        kinds,
        parse_severities(options.severity),
        Path(options.out),
        overlays=overlays,
        seed=options.seed,
        constants=options.constants,
    )
    made = ", ".join(f"{count:,} with the constants of {name}" for name, count in used.items())
    told = f"{sum(used.values()):,} images, {made}" if used else "all images are there already"
    tell(f"{options.out}: {told}")
    for reason in left_out if options.kind == "all" else ():
        say(f"left out: {reason}")
