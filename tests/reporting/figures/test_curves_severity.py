from __future__ import annotations

import json

import numpy as np
import pytest

from onedomain.data.corruptions import KINDS, SEVERITIES
from onedomain.data.files import to_json_lines
from onedomain.reporting.figures import figures_for, save
from onedomain.reporting.figures.curves import MOST_LINES, over_severity
from onedomain.reporting.figures.declare import Missing
from onedomain.reporting.figures.domains import accuracy
from onedomain.reporting.names import method_title
from onedomain.runs.records import read_run
from tests.reporting.figures.made import add_outcome, add_snapshot, make_run

LITE = "cifar10-c-lite"


def scores(worst, noise=None, kinds=KINDS):
    """Clean images, and every corruption with 0.1 more at each severity below the worst."""
    every = {kind: noise if noise is not None and kind.endswith("noise") else worst for kind in kinds}
    found = {f"{kind}-{level}": value + 0.1 * (5 - level) for kind, value in every.items() for level in SEVERITIES}
    return {"cifar10": 0.95, **found}


def made(folder, method, seed=0, settings=None, **options):
    make_run(
        folder / f"{method}-{seed}-{len(list(folder.iterdir()))}", method, seed, settings, benchmark=LITE, **options
    )


def runs_in(folder):
    return [read_run(each) for each in sorted(folder.iterdir())]


def lines(axes):
    return {container.get_label(): container for container in axes.containers}


def test_lines_are_means_over_corruptions_and_seeds(tmp_path):
    made(tmp_path, "sdg", 0, accuracies=scores(0.4, noise=0.2))
    made(tmp_path, "sdg", 1, accuracies=scores(0.4, noise=0.4))
    made(tmp_path, "sdg", 0, {"meta": False}, accuracies=scores(0.3))
    figure = over_severity(runs_in(tmp_path), LITE)
    assert [axes.get_title() for axes in figure.axes] == [
        "all corruptions",
        "Gaussian noise",
        "speckle noise",
        "impulse noise",
        "shot noise",
    ]
    whole, noise = lines(figure.axes[0]), lines(figure.axes[1])
    assert set(whole) == {"SDG", "SDG, meta=false"}
    means = [0.4 + 0.1 * (5 - level) - 0.1 * 4 / 19 for level in SEVERITIES]
    assert whole["SDG"][0].get_ydata() == pytest.approx(means)
    assert noise["SDG"][0].get_ydata() == pytest.approx([0.7, 0.6, 0.5, 0.4, 0.3])
    (whiskers,) = noise["SDG"][2]
    assert np.diff(whiskers.get_segments()[0][:, 1]) == pytest.approx(2 * np.std([0.2, 0.4], ddof=1))
    assert noise["SDG, meta=false"][0].get_ydata() == pytest.approx([0.7, 0.6, 0.5, 0.4, 0.3])
    assert not noise["SDG, meta=false"].has_yerr
    looks = {(line[0].get_marker(), line[0].get_linestyle()) for line in whole.values()}
    assert len(looks) == 2


def test_corruptions_that_one_run_lacks_are_in_no_mean(tmp_path):
    some = scores(0.4, noise=0.1, kinds=("fog", "snow", "shot-noise", "speckle-noise"))
    del some["shot-noise-3"]
    made(tmp_path, "erm", accuracies=some)
    made(tmp_path, "sdg", accuracies=scores(0.4, kinds=("fog", "shot-noise", "speckle-noise")))
    figure = over_severity(runs_in(tmp_path), LITE)
    assert [axes.get_title() for axes in figure.axes] == ["2 of 19 corruptions", "speckle noise"]
    assert lines(figure.axes[0])["ERM"][0].get_ydata()[-1] == pytest.approx(0.25)


def test_domains_that_are_no_corruptions_are_not_drawn(tmp_path):
    make_run(tmp_path / "a", accuracies={"s": 0.9, "fog-1": 0.5}, benchmark="bench")
    with pytest.raises(Missing, match="no corruptions in five severities"):
        over_severity(runs_in(tmp_path), "bench")
    made(tmp_path, "sdg", accuracies={"cifar10": 0.9})
    with pytest.raises(Missing, match="no corruption was scored in all five severities"):
        over_severity([read_run(tmp_path / "sdg-0-1")], LITE)


def test_of_many_methods_those_that_look_different_are_drawn_and_the_others_named(tmp_path):
    methods = ["augmix", "ccsa", "d-sne", "gud", "jigen", "me-ada", "randconv", "erm", "sdg"]
    for method in methods:
        made(tmp_path, method, accuracies=scores(0.4))
    figure = over_severity(runs_in(tmp_path), LITE)
    drawn = list(lines(figure.axes[0]))
    assert len(drawn) == MOST_LINES == 7
    assert {"SDG", "ERM"} < set(drawn)
    assert "not drawn" in figure.get_supxlabel()
    left_out = {method_title(method) for method in methods} - set(drawn)
    assert len(left_out) == 2
    for label in left_out:
        assert label in figure.get_supxlabel()


def test_the_figure_of_accuracies_has_a_row_a_category_and_not_95(tmp_path):
    made(tmp_path, "erm", accuracies=scores(0.4, noise=0.2))
    figure = accuracy(runs_in(tmp_path), LITE)
    (axes,) = figure.axes
    names = [text.get_text() for text in axes.get_yticklabels()]
    assert names == ["cifar10 (source)", "weather", "blur", "noise", "digital", "average unseen"]
    values = dict(zip(names, axes.containers[0][0].get_xdata(), strict=True))
    assert values["noise"] == pytest.approx(0.4)
    assert values["blur"] == pytest.approx(0.6)
    assert figure.get_size_inches()[1] < 6


def with_notes(folder, note, domains):
    """The records of a run, those of the named domains with a note."""
    path = folder / "results.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text(to_json_lines([{**row, "note": note if row["domain"] in domains else ""} for row in rows]))
    return [read_run(folder)]


def test_regenerated_targets_are_called_so_in_every_figure_of_them(tmp_path):
    accuracies = scores(0.4)
    folder = tmp_path / "a"
    options = {"benchmark": LITE, "accuracies": accuracies, "scores": dict.fromkeys(accuracies, 1.0)}
    make_run(folder, "uncertain-sdg", **options)
    for domain in ("cifar10", "fog-1"):
        add_outcome(folder, domain, unseen=domain != "cifar10", benchmark=LITE)
    for step in (10, 20):
        add_snapshot(folder, step)
    targets = [domain for domain in accuracies if domain != "cifar10"]
    runs = with_notes(folder, "regenerated, 6 of 1,000 images", targets)
    drawn = {each.name: each.figure for each in figures_for(runs, LITE)}
    of_training = {"perturbation", "perturbation-maps", "embedding-training", "mixed-labels"}
    assert set(drawn) >= of_training | {"accuracy", "accuracy-uncertainty", "severity", "reliability", "embedding"}
    for name, figure in drawn.items():
        last = figure.get_supxlabel().splitlines()[-1:]
        assert (last == ["targets: regenerated, 6 of 1,000 images"]) is (name not in of_training), name
    assert drawn["severity"].get_supxlabel().startswith("severity\n")
    figure = drawn["accuracy"]  # the line stands below the axis' own label, inside the figure
    figure.draw_without_rendering()
    remark, label = figure._supxlabel.get_window_extent(), figure.axes[0].xaxis.label.get_window_extent()
    assert 0 <= remark.y0 < remark.y1 <= label.y0

    some = figures_for(with_notes(folder, "regenerated", ["fog-1", "fog-2"]), LITE)
    assert some[0].figure.get_supxlabel() == "2 of 95 targets: regenerated"
    assert some[0].name == "accuracy"
    assert figures_for(with_notes(folder, "", []), LITE)[0].figure.get_supxlabel() == ""


def test_both_files_are_written(tmp_path):
    runs, out = tmp_path / "runs", tmp_path / "out"
    runs.mkdir()
    made(runs, "sdg", accuracies=scores(0.4))
    [drawn] = [each for each in figures_for(runs_in(runs), LITE) if each.name == "severity"]
    assert {path.name for path in save(drawn.figure, out, drawn.name)} == {"severity.svg", "severity.png"}
    assert "Gaussian noise" in (out / "severity.svg").read_text()
