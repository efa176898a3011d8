"""What there is of the data sets with labels of pixels, SYNTHIA and CamVid, and whether it is whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from onedomain.data.datasets import camvid, synthia
from onedomain.data.datasets.fetch import Entry, Folder, Row
from onedomain.errors import UserError

CATALOGUE: Mapping[str, Entry] = {
    "synthia": Entry("rendered driving scenes, three places in five conditions"),
    "camvid": Entry("driving scenes by day and at dusk"),
}
GET: Mapping[str, str] = {"synthia": synthia.GET, "camvid": camvid.GET}
NEEDED = (
    *((synthia.SOURCE, condition) for condition in synthia.SOURCE_CONDITIONS),
    *((place, condition) for place in synthia.LOCATIONS for condition in synthia.CONDITIONS if place != synthia.SOURCE),
)


def listed(name: str, data_dir: Folder) -> Row:
    """Quick: file names are counted, and of CamVid the masks read."""
    count = {"synthia": _synthia_counts, "camvid": camvid.counts}[name]
    where = Path(data_dir) / (camvid.FILE if name == "camvid" else "synthia")
    try:
        counts = count(data_dir) if where.exists() or name == "synthia" else {}
    except UserError as error:
        return Row(name, CATALOGUE[name].what, "broken", str(where), {}, (str(error),))
    if not counts:
        return Row(name, CATALOGUE[name].what, "missing", GET[name], {})
    return Row(name, CATALOGUE[name].what, "present", str(where), counts)


def checked(name: str, data_dir: Folder) -> Row:
    """Every image and mask is read."""
    row = listed(name, data_dir)
    if row.state != "present":
        return row
    check: Callable[[Folder], list[str]] = {"synthia": _check_synthia, "camvid": _check_camvid}[name]
    try:
        problems = check(data_dir)
    except UserError as error:
        return Row(name, row.what, "broken", row.where, row.counts, (str(error),))
    return Row(name, row.what, "partial" if problems else "whole", row.where, row.counts, tuple(problems))


def _synthia_counts(data_dir: Folder) -> dict[str, int]:
    counts = {}
    for location, condition in NEEDED:
        folder = synthia.locate(synthia.sequence(location, condition), data_dir)
        if folder is not None:
            counts[f"{location}-{condition}"] = len(list((folder / "RGB" / synthia.CAMERA).glob("*.png")))
    return counts


def _check_synthia(data_dir: Folder) -> list[str]:
    problems = []
    for location, condition in NEEDED:
        name = synthia.sequence(location, condition)
        if synthia.locate(name, data_dir) is None:
            problems.append(f"{name} is missing")
            continue
        domain = synthia.load(location, condition, data_dir)
        for start in range(0, len(domain), 64):  # as many as are decoded at once
            domain.batch(range(start, min(start + 64, len(domain))))
        stems = [frame.image.stem for frame in synthia.find(location, condition, data_dir)]
        gaps = sorted(set(range(int(stems[-1]))) - set(map(int, stems))) if all(map(str.isdecimal, stems)) else []
        if gaps:
            problems.append(f"{name}: {len(gaps)} frames are missing, the first is {gaps[0]:0{len(stems[0])}d}")
    return problems


def _check_camvid(data_dir: Folder) -> list[str]:
    problems = []
    for key, published in camvid.COUNTS.items():
        images, _ = camvid.read(key, data_dir)
        if len(images) != published:
            problems.append(f"{key}: {len(images):,} of {published:,} images")
    return problems
