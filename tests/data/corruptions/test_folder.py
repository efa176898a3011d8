"""A user's own images: same places, same names, whatever their size and format."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from onedomain.data import processes
from onedomain.data.corruptions import corrupt
from onedomain.data.corruptions.folder import corrupt_folder, parse_severities
from onedomain.errors import UserError


@pytest.fixture
def pictures(tmp_path: Path, photographs: np.ndarray) -> Path:
    folder = tmp_path / "pictures"
    for place, name in enumerate(("cat/a.png", "cat/more/b.JPG", "dog/c.bmp", "dog/d.webp", "e.tiff")):
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(photographs[place]).save(file, **({"lossless": True} if name.endswith("webp") else {}))
    Image.fromarray(photographs[5][..., 0]).save(folder / "grey.png")
    Image.fromarray(np.resize(photographs[6], (130, 140, 3))).save(folder / "large.png")
    (folder / "notes.txt").write_text("no image")
    return folder


def run(
    pictures: Path,
    out: Path,
    kinds: tuple[str, ...] = ("contrast",),
    severities: tuple[int, ...] = (3,),
    constants: str | None = None,
    overlays: Path = Path("none"),
) -> Counter[str]:
    return corrupt_folder(pictures, kinds, severities, out, overlays=overlays, constants=constants, shown=False)


def names(folder: Path) -> set[str]:
    return {file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()}


ALL = {"cat/a.png", "cat/more/b.JPG", "dog/c.bmp", "dog/d.webp", "e.tiff", "grey.png", "large.png"}


def test_places_names_and_formats_are_kept(pictures: Path, tmp_path: Path, photographs: np.ndarray) -> None:
    out = tmp_path / "out"
    used = run(pictures, out, ("gaussian-noise",))
    assert used == {"cifar10-c": 6, "imagenet-c": 1}
    assert names(out) == ALL | {"corrupted.json"}
    expected = corrupt(photographs[:1], "gaussian-noise", 3, keys=["cat/a.png"])[0]
    np.testing.assert_array_equal(Image.open(out / "cat" / "a.png"), expected)
    for name in ("dog/c.bmp", "dog/d.webp"):  # nothing is lost on the way
        place = sorted(ALL).index(name)
        np.testing.assert_array_equal(
            Image.open(out / name), corrupt(photographs[place : place + 1], "gaussian-noise", 3, keys=[name])[0]
        )
    assert Image.open(out / "cat" / "more" / "b.JPG").format == "JPEG"
    assert Image.open(out / "large.png").size == (140, 130)


def test_several_kinds_and_severities_have_folders(pictures: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(pictures, out, ("contrast", "brightness"), (1, 5))
    found = {"/".join(name.split("/")[:2]) for name in names(out) if "/" in name}
    assert found == {"contrast/1", "contrast/5", "brightness/1", "brightness/5"}
    assert names(out / "contrast" / "5") == ALL


def test_it_goes_on_where_it_was_stopped(pictures: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(pictures, out)
    kept, lost = out / "e.tiff", out / "cat" / "a.png"
    before, again = kept.stat().st_mtime_ns, lost.read_bytes()
    lost.unlink()
    assert sum(run(pictures, out).values()) == 1
    assert (kept.stat().st_mtime_ns, lost.read_bytes()) == (before, again)


def test_an_image_does_not_depend_on_the_other_files(pictures: Path, tmp_path: Path) -> None:
    run(pictures, tmp_path / "all", ("shot-noise",))
    for name in ALL - {"dog/c.bmp"}:
        (pictures / name).unlink()
    run(pictures, tmp_path / "one", ("shot-noise",))
    assert (tmp_path / "one" / "dog" / "c.bmp").read_bytes() == (tmp_path / "all" / "dog" / "c.bmp").read_bytes()


def test_constants_can_be_chosen(pictures: Path, tmp_path: Path) -> None:
    assert run(pictures, tmp_path / "out", constants="imagenet-c") == {"imagenet-c": 7}


def test_mistakes_are_named(pictures: Path, tmp_path: Path) -> None:
    for given, folder, out in (
        ("is not a folder", tmp_path / "nowhere", tmp_path / "out"),
        ("lies in the folder of the images", pictures, pictures / "out"),
        ("lies in the folder of the images", pictures, pictures),
        ("holds no image", tmp_path / "empty", tmp_path / "out"),
        ("exists and is not empty", pictures, tmp_path / "full"),
    ):
        (tmp_path / "empty").mkdir(exist_ok=True)
        (tmp_path / "full").mkdir(exist_ok=True)
        (tmp_path / "full" / "x").touch()
        with pytest.raises(UserError, match=given):
            run(folder, out)
    assert not (tmp_path / "out").exists()
    run(pictures, tmp_path / "out")
    with pytest.raises(UserError, match=r"was filled with severities \[3\], and now it is \[4\]"):
        run(pictures, tmp_path / "out", severities=(4,))
    (pictures / "broken.png").write_bytes(b"broken")
    with pytest.raises(UserError, match=r"broken\.png: cannot be read"):
        run(pictures, tmp_path / "out")


def test_what_is_broken_is_named_by_another_process_too(
    pictures: Path, tmp_path: Path, overlays: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "cores", lambda: 2)
    (pictures / "broken.png").write_bytes(b"broken")
    with pytest.raises(UserError, match=r"broken\.png: cannot be read"):
        run(pictures, tmp_path / "out")
    (pictures / "broken.png").unlink()
    shutil.copytree(overlays, tmp_path / "frost")
    (tmp_path / "frost" / "frost3.png").write_bytes(b"broken")
    with pytest.raises(UserError, match=r"frost3\.png: cannot be decoded"):
        run(pictures, tmp_path / "frosted", ("frost",), overlays=tmp_path / "frost")


def test_severities() -> None:
    assert parse_severities("all") == (1, 2, 3, 4, 5)
    assert parse_severities("4") == (4,)
    for wrong in ("0", "6", "high", "1,2", ""):
        with pytest.raises(UserError, match="--severity: got"):
            parse_severities(wrong)
