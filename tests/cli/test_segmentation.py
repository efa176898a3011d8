"""The command line with labels of pixels: a folder in SYNTHIA's layout from training to pictures of predictions."""

from __future__ import annotations

import io
import json
import math
import sys
from contextlib import redirect_stderr, redirect_stdout

import numpy as np
import pytest
from PIL import Image

import onedomain as od
from onedomain import cli
from onedomain.data.datasets import synthia
from onedomain.errors import UserError
from onedomain.evaluation.masks import palette
from tests.data.frames import make_sequence, write_mask

QUICK = ["--network", "fcn-small", "--set", "batch_size=2", "--threads", "1"]
DOMAINS = ["warm_up=0", "domain_every=1", "domain_size=2", "ascent_steps=1", "domains=1", "beta=0"]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    make_sequence(folder, "highway", "dawn")
    make_sequence(folder, "new-york", "dawn", count=2)
    make_sequence(folder, "old-town", "night", count=3, shift=120)
    return folder


@pytest.fixture(scope="module")
def trained(data, tmp_path_factory):
    """A run of SDG, and what the command printed."""
    folder = tmp_path_factory.mktemp("runs") / "a"
    changes = [part for change in DOMAINS for part in ("--set", change)]
    command = ["train", "-b", "synthia-dawn", "-m", "sdg", "--steps", "2", *QUICK, *changes, "--data", data, "--json"]
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patched, redirect_stdout(out), redirect_stderr(err):
        patched.setattr(sys, "argv", ["onedomain", *map(str, command), "--out", str(folder)])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
    assert stopped.value.code == 0, err.getvalue()
    return folder, json.loads(out.getvalue()), err.getvalue()


def test_a_folder_in_synthias_layout_is_trained_on_and_scored(trained):
    folder, scores, told = trained
    assert list(scores["domains"]) == ["highway-dawn", "new-york-dawn", "old-town-night"]
    assert [row["count"] for row in scores["domains"].values()] == [1, 2, 3]
    assert len(scores["missing"]) == 8
    assert "not scored: domain 'new-york-fog': not found" in told
    row = scores["domains"]["old-town-night"]
    assert row["iou"].keys() == set(synthia.CLASSES)
    present = {name: value for name, value in row["iou"].items() if value is not None}
    assert present.keys() == {"sky", "road", "car"}  # void never counts, the others do not occur
    assert row["miou"] == pytest.approx(np.mean(list(present.values())))
    unseen = [scores["domains"][name]["miou"] for name in ("new-york-dawn", "old-town-night")]
    assert scores["average"]["miou"] == pytest.approx(np.mean(unseen))
    records = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]
    by_class = {r["class"]: r["value"] for r in records if r["domain"] == "old-town-night" and "class" in r}
    assert by_class == present
    metrics = [r["metric"] for r in records if r["domain"] == "old-town-night"]
    assert {"miou", "accuracy", "error_auroc", "iou/car"} <= set(metrics)
    assert len(metrics) == len(set(metrics))


def test_it_is_scored_again_with_the_same_result(trained, data, onedomain):
    folder, scores, _ = trained
    code, out, _ = onedomain("evaluate", folder, "--data", data, "--json")
    assert code == 0
    again, before = json.loads(out)["domains"], scores["domains"]
    for name, row in before.items():
        assert again[name]["miou"] == row["miou"]
        assert again[name]["fingerprint"] == row["fingerprint"]
    _, out, _ = onedomain("evaluate", folder, "--data", data)
    assert "mIoU %" in out
    assert "IoU %" in out
    assert "lane marking" not in out  # no domain has it


def test_it_has_a_report_and_figures_though_a_domain_is_of_one_frame(trained, tmp_path, onedomain):
    folder, scores, _ = trained
    assert scores["domains"]["highway-dawn"]["count"] == 1
    code, _, err = onedomain("report", folder, "--out", tmp_path / "report.html")
    assert code == 0, err
    assert "mIoU on unseen domains, %" in (tmp_path / "report.html").read_text()
    code, out, err = onedomain("figures", folder, "--out", tmp_path / "figures", "--json")
    assert code == 0, err
    assert {"miou", "masks", "classes"} <= {each["name"] for each in json.loads(out)["figures"]}
    assert (tmp_path / "figures" / "miou.svg").exists()


def test_its_run_resumes_with_the_same_network(trained, data, onedomain):
    folder, _, _ = trained
    code, _, err = onedomain("train", "--resume", "--out", folder, "--data", data, "--no-evaluate")
    assert code == 0, err
    code, _, err = onedomain("train", "--resume", "--out", folder, "--data", data, "--network", "fcn-32s")
    assert code == 2
    assert "name: is 'fcn-32s' now, and was 'fcn-small'" in err


def test_predict_writes_the_mask_and_the_uncertainty_of_an_image(trained, tmp_path, onedomain):
    folder, _, _ = trained
    image = Image.fromarray(np.random.default_rng(0).integers(0, 256, (50, 70, 3), dtype=np.uint8))
    image.save(tmp_path / "street.png")
    code, out, err = onedomain("predict", folder, tmp_path / "street.png", "--out", tmp_path / "said", "--json")
    assert code == 0, err
    said = json.loads(out)
    [row] = said["predictions"]
    assert row["mask"] == str(tmp_path / "said" / "street.mask.png")
    mask = Image.open(row["mask"])
    assert (mask.mode, mask.size) == ("P", (70, 50))
    numbers = np.asarray(mask)
    assert row["shares"].keys() >= {synthia.CLASSES[number] for number in np.unique(numbers)}
    assert sum(row["shares"].values()) == pytest.approx(1)
    colours = np.asarray(mask.convert("RGB"))
    assert np.array_equal(colours, np.array(list(synthia.COLOURS.values()), np.uint8)[numbers])
    assert said["colours"]["sky"] == [128, 128, 128]
    uncertainty = Image.open(row["uncertainty_map"])
    assert (uncertainty.mode, uncertainty.size) == ("L", (70, 50))
    assert said["uncertainty_of_white"] == pytest.approx(math.log(14))
    mean = np.asarray(uncertainty).mean() / 255 * said["uncertainty_of_white"]
    assert mean == pytest.approx(row["uncertainty"], abs=0.02)
    assert row["out_of_domain"] in (True, False)
    assert said["calibration"]["held_out"]

    code, out, _ = onedomain("predict", folder, tmp_path / "street.png")
    assert code == 0
    assert f"mask in {folder / 'predictions' / 'street.mask.png'}" in out
    assert (folder / "predictions" / "street.uncertainty.png").exists()


def test_nothing_is_written_if_an_image_is_bad(trained, tmp_path, onedomain):
    folder, _, _ = trained
    Image.new("RGB", (20, 20)).save(tmp_path / "a.png")
    for bad, message in (
        (tmp_path / "none.png", "none.png: does not exist"),
        (tmp_path / "x" / "a.png", "two are called 'a'"),
    ):
        code, out, err = onedomain("predict", folder, tmp_path / "a.png", bad, "--out", tmp_path / "said")
        assert (code, out) == (2, "")
        assert message in err
    assert not (tmp_path / "said").exists()


def test_frames_of_ones_own_are_scored(trained, tmp_path, onedomain):
    folder, _, _ = trained
    for part in ("images", "labels"):
        (tmp_path / "mine" / part).mkdir(parents=True)
    Image.new("RGB", (40, 30), (200, 220, 255)).save(tmp_path / "mine" / "images" / "1.png")
    Image.fromarray(np.full((30, 40), 1, np.uint8)).save(tmp_path / "mine" / "labels" / "1.png")
    code, out, err = onedomain("evaluate", folder, "--on", f"mine={tmp_path / 'mine'}", "--json")
    assert code == 0, err
    assert json.loads(out)["domains"]["mine"]["iou"]["road"] is None
    code, _, err = onedomain("train", "--source", tmp_path / "mine", "--out", tmp_path / "run")
    assert code == 2
    assert "od.frame_folder" in err


def test_a_bad_label_ends_in_one_line_before_anything_is_written(tmp_path, onedomain):
    folder = make_sequence(tmp_path, "highway", "dawn")
    make_sequence(tmp_path, "new-york", "dawn", count=1)
    name = f"{synthia.split_source(5)['train'][1]:06d}.png"
    label = folder / "GT" / "LABELS" / synthia.CAMERA / name
    Image.new("RGB", (20, 12)).save(label)
    command = ["train", "-b", "synthia-dawn", *QUICK, "--steps", "1", "--data", tmp_path, "--out", tmp_path / "run"]
    code, out, err = onedomain(*command)
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert f"{name}: is a PNG of 8 bits, RGB; allowed: a 16-bit RGB PNG" in err
    assert not (tmp_path / "run").exists()
    write_mask(label, np.full((12, 20), 13))  # only known when it is read
    code, _, err = onedomain(*command, "--steps", "2")  # two batches of two: every frame that is trained on
    assert code == 2
    assert f"{name}: class id 13 found" in err.splitlines()[-1]


def test_a_target_that_cannot_be_read_does_not_cost_the_scores_of_the_others(tmp_path, onedomain):
    make_sequence(tmp_path, "highway", "dawn")
    make_sequence(tmp_path, "new-york", "dawn", count=2)
    label = make_sequence(tmp_path, "old-town", "night", count=2) / "GT" / "LABELS" / synthia.CAMERA / "000001.png"
    write_mask(label, np.full((12, 20), 13))
    run = tmp_path / "run"
    where = ["--data", tmp_path, "--json"]
    code, out, err = onedomain("train", "-b", "synthia-dawn", *QUICK, "--steps", "1", *where, "--out", run)
    assert code == 0, err
    told = f"domain 'old-town-night': {label}: class id 13 found"
    assert f"not scored: {told}" in err
    scores = json.loads(out)
    assert list(scores["domains"]) == ["highway-dawn", "new-york-dawn"]
    assert [reason for reason in scores["missing"] if reason.startswith(told)]
    assert scores["average"]["miou"] == scores["domains"]["new-york-dawn"]["miou"]
    domains = {json.loads(line)["domain"] for line in (run / "results.jsonl").read_text().splitlines()}
    assert domains == {"highway-dawn", "new-york-dawn"}

    broken = synthia.SYNTHIA.load("old-town-night", tmp_path)
    with pytest.raises(UserError, match="class id 13 found"):  # in Python nothing is left out unasked
        od.load(run).evaluate({"home": synthia.SYNTHIA.load("new-york-dawn", tmp_path), "night": broken})

    for path in tmp_path.rglob("LABELS/**/*.png"):
        write_mask(path, np.full((12, 20), 13))
    code, out, err = onedomain("evaluate", run, *where)  # nothing is left to score
    assert (code, out) == (2, "")
    assert "class id 13 found" in err.splitlines()[-1]


def test_colours_of_other_classes_are_all_different():
    colours = palette([str(number) for number in range(256)])
    assert len(np.unique(colours, axis=0)) == 256
    assert colours[15].tolist() == [192, 128, 128]  # as in Pascal VOC
