"""Run folders that others made, or use at the same time: with links in them, with a lock, with leftovers."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from contextlib import suppress

import numpy as np
import pytest
from PIL import Image

import onedomain as od
from onedomain.cli import tables
from onedomain.data.files import TEMPORARY
from onedomain.data.folders import LOCK, sole_use
from onedomain.errors import UserError
from onedomain.training import adapted as adapted_module
from onedomain.training import run as run_module
from tests.reporting.reproduce.toy import blocks

QUICK = {"steps": 2, "batch_size": 6, "domains": 1, "warm_up": 0, "domain_size": 6, "wae_epochs": 1, "ascent_steps": 1}
INSIDE = ("run.yaml", "metrics.jsonl", "checkpoint.pt", "model.safetensors", "results.jsonl", "calibration.safetensors")
DEEPER = ("outcomes", "outcomes/own", "outcomes/own/near.safetensors", "augmented", "augmented/augmented-1.npy")
EVERY = (*INSIDE, *DEEPER, "augmented/augmented-1.sample.safetensors", "augmented/augmented-1.embedding.safetensors")


def fit(folder, **resume):
    return od.fit(od.SDG(**QUICK), blocks(12, 0, "blocks"), out=folder, progress=False, **resume)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A scored run, and images of each class beside it."""
    folder = tmp_path_factory.mktemp("made")
    run = fit(folder / "run")
    run.write_records(run.evaluate({"near": blocks(6, 1, "near")}))
    for label in ("left", "middle", "right"):
        (folder / "photos" / label).mkdir(parents=True)
        for number in range(2):
            pixels = np.random.default_rng(number).integers(0, 256, (32, 32, 3)).astype(np.uint8)
            Image.fromarray(pixels).save(folder / "photos" / label / f"{number}.png")
    assert all((folder / "run" / name).exists() for name in EVERY)
    return folder


@pytest.fixture
def place(made, tmp_path, monkeypatch):
    shutil.copytree(made, tmp_path / "place")
    monkeypatch.chdir(tmp_path / "place")
    for module in (run_module, adapted_module):
        monkeypatch.setattr(module, "SECONDS_TO_WAIT", 0.0)
    return tmp_path / "place"


def contents(folder):
    return {path: path.read_bytes() if path.is_file() else b"" for path in folder.rglob("*")}


def linked(run, name, outside, kind):
    """Let something of the run lie outside, where a link leads; None if it cannot be so."""
    target = outside / name.replace("/", "-")
    if kind == "hard":
        if (run / name).is_dir():
            return None
        os.link(run / name, target)
        return target
    (run / name).rename(target)
    if kind == "dangling":
        target.rename(f"{target} moved")
    (run / name).symlink_to(target)
    return target


COMMANDS = {
    "evaluate": ("evaluate", "run", "--on", "near=photos"),
    "adapt": ("adapt", "run", "--target", "near=photos", "--shots", "1", "--steps", "1", "--out", "run", "--resume"),
    "corrupt": ("corrupt", "photos", "--kind", "brightness", "--out", "run"),
}


@pytest.mark.parametrize("kind", ["symbolic", "dangling", "hard"])
@pytest.mark.parametrize("command", ["train", *COMMANDS])
def test_nothing_is_written_outside_of_a_run_folder(made, tmp_path, monkeypatch, onedomain, command, kind):
    for number, name in enumerate(EVERY):
        folder, outside = tmp_path / f"place-{number}", tmp_path / f"outside-{number}"
        shutil.copytree(made, folder)
        outside.mkdir()
        monkeypatch.chdir(folder)
        if command == "train" and name != "checkpoint.pt":
            (folder / "run" / "checkpoint.pt").unlink()  # all is made again
        if linked(folder / "run", name, outside, kind) is None:
            continue
        before = contents(outside)
        if command == "train":
            with suppress(UserError):
                fit(folder / "run", resume=True)
        else:
            code, _, said = onedomain(*COMMANDS[command])
            assert code in (0, 2), said
            assert "Traceback" not in said
        assert contents(outside) == before, name
        shutil.rmtree(folder)


@pytest.mark.parametrize("command", ["figures run --out run/link", "report run --out run/link/x.html"])
def test_results_do_not_leave_a_run_folder_by_a_link(place, tmp_path, onedomain, command):
    (tmp_path / "outside").mkdir()
    (place / "run" / "link").symlink_to(tmp_path / "outside")
    code, _, said = onedomain(*command.split())
    assert code == 2, said
    assert "no links" in said
    assert not list((tmp_path / "outside").iterdir())


def test_a_page_takes_the_place_of_a_link(place, tmp_path, onedomain):
    (tmp_path / "mine.html").write_text("<!doctype html>mine")
    (place / "page.html").symlink_to(tmp_path / "mine.html")
    assert onedomain("report", "run", "--out", "page.html")[0] == 0
    assert (tmp_path / "mine.html").read_text() == "<!doctype html>mine"


def test_a_page_does_not_take_the_place_of_a_device(place, onedomain):
    os.mkfifo(place / "page.html")
    code, _, said = onedomain("report", "run", "--out", "page.html")
    assert code == 2
    assert "page.html: is no file; allowed: a file" in said
    assert stat.S_ISFIFO((place / "page.html").stat().st_mode)


def test_scores_are_kept_before_they_are_shown(place, onedomain, monkeypatch):
    (place / "run" / "results.jsonl").unlink()

    def gone(*given):
        raise BrokenPipeError

    monkeypatch.setattr(tables, "show_evaluation", gone)
    assert onedomain(*COMMANDS["evaluate"])[0] == 1
    assert (place / "run" / "results.jsonl").read_text().count("accuracy") == 1


def test_several_draws_do_not_leave_their_folder_by_a_link(place, tmp_path, onedomain):
    shutil.copytree(place / "run", tmp_path / "elsewhere")
    before = contents(tmp_path / "elsewhere")
    (place / "out").mkdir()
    (place / "out" / "draw-1").symlink_to(tmp_path / "elsewhere")
    words = ("adapt", "run", "--target", "near=photos", "--shots", "1", "--steps", "1", "--seeds", "2", "--resume")
    code, _, said = onedomain(*words, "--out", "out")
    assert code == 2
    assert "symbolic link" in said
    assert contents(tmp_path / "elsewhere") == before


HELD = {
    "evaluate": ("run", COMMANDS["evaluate"]),
    "adapt": ("run", (*COMMANDS["adapt"][:-2], "run")),
    "corrupt": ("out", ("corrupt", "photos", "--kind", "brightness", "--out", "out")),
}


@pytest.mark.parametrize("command", ["evaluate", "corrupt"])
def test_what_another_call_writes_to_is_left_to_it(place, onedomain, command):
    folder, words = HELD[command]
    with sole_use(place / folder):
        before = contents(place)
        code, _, said = onedomain(*words)
        assert code == 2, said
        assert said.splitlines()[-1].startswith(f"onedomain: out: {folder} is in use by another call")
        assert contents(place) == before
    assert onedomain(*words)[0] == 0


def test_a_run_is_trained_by_one_call_at_a_time(place):
    with sole_use(place / "run"), pytest.raises(UserError, match="in use by another call"):
        fit(place / "run", resume=True)
    fit(place / "run", resume=True)


def test_the_lock_of_a_killed_call_holds_nobody_up(place, onedomain):
    (place / "run" / LOCK).touch()
    assert onedomain(*COMMANDS["evaluate"])[0] == 0
    assert not (place / "run" / LOCK).exists()


def test_where_there_are_no_locks_it_is_said(place, onedomain, monkeypatch):
    import fcntl

    def no_locks(*given):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    code, _, said = onedomain(*COMMANDS["evaluate"])
    assert code == 0
    assert "note: run cannot be locked here; let no second call write to it" in said


@pytest.mark.parametrize(
    ("words", "where"),
    [
        (COMMANDS["evaluate"], "run/outcomes/own"),
        (("report", "run", "--out", "pages/x.html"), "pages"),
        (("figures", "run", "--out", "figures"), "figures"),
    ],
)
def test_leftovers_are_removed_at_the_next_start(place, onedomain, words, where):
    (place / where).mkdir(exist_ok=True)
    (place / where / f"{TEMPORARY}abc").touch()
    code, _, said = onedomain(*words)
    assert code == 0, said
    assert not list(place.rglob(f"{TEMPORARY}*"))


def test_weights_that_are_not_finite_are_refused(place, onedomain):
    from onedomain.networks.weights import load_weights, save_weights

    path = place / "run" / "model.safetensors"
    weights = load_weights(path)
    next(iter(weights.values())).fill_(float("nan"))
    save_weights(path, weights)
    code, _, said = onedomain(*COMMANDS["evaluate"])
    assert code == 2
    assert "does not fit the network" in said
    assert "not finite" in said
