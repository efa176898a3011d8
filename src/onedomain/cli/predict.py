"""`onedomain predict`: ask a trained run about images."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onedomain.cli import options as shared
from onedomain.cli.output import print_json

GROUP = shared.USE


@dataclass(frozen=True)
class Options:
    run: str = shared.run_folder()
    images: list[str] = shared.argument("IMAGE…", "Image files, or folders of them.")
    out: str | None = shared.option("--out DIR", "Where masks and uncertainty maps go. [RUN/predictions]")
    device: str | None = shared.device()
    json: bool = shared.json()


def predict(options: Options) -> None:
    """Give the label of each image, its probability, and how uncertain it is.

    A run of segmentation writes two pictures per image: the mask, and how uncertain each pixel is.
    """
    from onedomain.cli import tables
    from onedomain.data.image_files import find_images
    from onedomain.errors import UserError
    from onedomain.evaluation import masks
    from onedomain.training.fit import load
    from onedomain.training.mask_files import predict_to_files

    run = load(options.run, device=options.device)
    dense, scale = run.manifest.source.dense, dict[str, Any]()
    if dense:
        files = [
            str(file) for each in map(Path, options.images) for file in (find_images(each) if each.is_dir() else [each])
        ]
        rows = predict_to_files(run, files, Path(options.out or Path(options.run) / "predictions"))
        colours = dict(zip(run.classes, masks.palette(run.classes).tolist(), strict=True))
        scale = {"colours": colours, "uncertainty_of_white": math.log(len(run.classes))}
    elif options.out:
        raise UserError("--out", f"given, and {options.run} labels images, not pixels", "a run that labels pixels")
    else:
        predictions = run.predict(options.images)
        rows = tables.predictions_as_json(predictions.files, predictions)
    if options.json:
        of = run.calibration  # what `out_of_domain` rests on
        told = of and {"threshold": of.threshold, "images": of.images, "held_out": of.held_out}
        print_json({"predictions": rows, **scale, "calibration": told})
    else:
        tables.show_predictions(rows, dense)
        tables.say_if_not_held_out(run)
