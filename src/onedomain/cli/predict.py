"""`onedomain predict`: ask a trained run about images."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from onedomain.cli import options as shared
from onedomain.cli.output import print_json

if TYPE_CHECKING:
    from onedomain.training.run import Run

GROUP = shared.USE


@dataclass(frozen=True)
class Options:
    run: str = shared.run_folder()
    images: list[str] = shared.argument("IMAGE…", "Image files.")
    out: str | None = shared.option("--out DIR", "Where masks and uncertainty maps go. [RUN/predictions]")
    device: str | None = shared.device()
    json: bool = shared.json()


def predict(options: Options) -> None:
    """Give the label of each image, its probability, and how uncertain it is.

    A run of segmentation writes two pictures per image: the mask, and how uncertain each pixel is.
    """
    from onedomain.cli import tables
    from onedomain.errors import UserError
    from onedomain.training.fit import load

    run = load(options.run, device=options.device)
    if run.manifest.source.dense:
        _predict_masks(run, options)
    elif options.out:
        raise UserError("--out", f"given, and {options.run} labels images, not pixels", "a run that labels pixels")
    else:
        _predict_labels(run, options)
    if not options.json:
        tables.say_if_not_held_out(run)


def _predict_labels(run: Run, options: Options) -> None:
    import numpy as np

    from onedomain.cli import tables
    from onedomain.data.image_files import decode_image

    height, width, channels = run.manifest.source.image_shape
    pixels = np.stack([decode_image(Path(file), (height, width), channels) for file in options.images])
    predictions = run.predict(pixels)
    if options.json:
        rows = tables.predictions_as_json(options.images, predictions)
        print_json({"predictions": rows, "calibration": tables.calibration_as_json(run)})
    else:
        tables.show_predictions(options.images, predictions)


def _predict_masks(run: Run, options: Options) -> None:
    from onedomain.cli import tables
    from onedomain.evaluation import masks
    from onedomain.training.mask_files import predict_to_files

    rows = predict_to_files(run, options.images, Path(options.out or Path(options.run) / "predictions"))
    if options.json:
        colours = dict(zip(run.classes, masks.palette(run.classes).tolist(), strict=True))
        scale = {"colours": colours, "uncertainty_of_white": math.log(len(run.classes))}
        document = {"predictions": rows, **scale, "calibration": tables.calibration_as_json(run)}
        print_json(document)
    else:
        tables.show_masks(rows)
