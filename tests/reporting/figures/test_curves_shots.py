from __future__ import annotations

from statistics import stdev

import pytest

from onedomain.data.files import to_json_lines
from onedomain.reporting.figures.curves import accuracy_over_shots
from onedomain.reporting.figures.declare import Missing
from onedomain.runs.records import read_run
from tests.reporting.page.made import adapted, made_rows, made_run, write_run


def drawn(folder, parent, shots, number, target, source, **how):
    """An adapted run as a folder, with what its parent had before: 30% on the target, 98% on the source."""
    rows = made_rows({"svhn": target, "home": source}, "digits", seen=["svhn", "home"])
    run = adapted(parent, rows, shots=shots, draw=number, **how)
    place = write_run(folder / run.folder, run, benchmark="digits")
    (place / "before.jsonl").write_text(to_json_lines(made_rows({"svhn": 0.3, "home": 0.98}, "digits")))
    return read_run(place)


@pytest.fixture
def runs(tmp_path):
    rows = made_rows({"svhn": 0.3, "home": 0.98}, "digits")
    parent = made_run({}, "sdg", benchmark="digits", rows=rows)
    found = [parent]
    found += [drawn(tmp_path, parent, 7, number, 0.5 + number / 10, 0.9) for number in range(3)]
    found += [drawn(tmp_path, parent, 10, number, 0.7, 0.8) for number in range(2)]
    found += [drawn(tmp_path, parent, 7, 0, 0.4, 0.95, method="fada", from_scratch=True)]
    return found


def points(axes, label):
    """Shots, accuracy and length of the whisker of a line."""
    line = next(each for each in axes.containers if each.get_label() == label)
    segments = line[2][0].get_segments() if line.has_yerr else []
    heights = [(segment[1][1] - segment[0][1]) / 2 if len(segment) else None for segment in segments]
    return [round(x) for x in line[0].get_xdata()], list(line[0].get_ydata()), heights


def test_a_line_a_method_from_what_it_was_to_what_it_became(runs):
    target, source = accuracy_over_shots(runs, "digits").axes
    assert (target.get_title(), source.get_title()) == ("svhn (adapted to)", "home (the source)")
    shots, accuracy, whiskers = points(target, "SDG")
    assert shots == [0, 7, 10]
    assert accuracy == pytest.approx([0.3, 0.6, 0.7])
    assert whiskers[1] == pytest.approx(stdev([0.5, 0.6, 0.7]))
    assert points(source, "SDG")[1] == pytest.approx([0.98, 0.9, 0.8])  # forgotten
    assert points(target, "FADA from scratch")[:2] == ([7], [0.4])  # its parent is not what it began with
    assert target.get_xticks().tolist() == [0, 7, 10]


def test_lines_differ_in_more_than_colour_and_other_settings_are_another_line(runs, tmp_path):
    other = drawn(tmp_path / "other", runs[0], 7, 0, 0.1, 0.9, settings={"learning_rate": 0.5})
    figure = accuracy_over_shots([*runs, other], "digits")
    lines = [container[0] for container in figure.axes[0].containers]
    assert len({line.get_marker() for line in lines}) == len({line.get_linestyle() for line in lines}) == 3
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == ["SDG", "FADA from scratch", "SDG, adaptation.learning_rate=0.5"]


def test_two_targets_have_their_own_panels(runs):
    usps = [adapted(runs[0], made_rows({"usps": 0.9, "home": 0.7}, "digits"), target="usps")]
    titles = [axes.get_title() for axes in accuracy_over_shots([*runs, *usps], "digits").axes]
    source = "home (the source, after {})"
    assert titles == ["svhn (adapted to)", source.format("svhn"), "usps (adapted to)", source.format("usps")]


def test_without_adapted_runs_there_is_none(runs):
    with pytest.raises(Missing, match="no run was adapted"):
        accuracy_over_shots(runs[:1], "digits")
    with pytest.raises(Missing, match="no run was adapted to a domain of this benchmark"):
        accuracy_over_shots(runs, "digits-lite")


def test_where_pixels_have_labels_it_is_their_miou():
    rows = made_rows({"svhn": 0.9}, "synthia-dawn")
    rows += [{**row, "metric": "miou", "value": 0.4} for row in rows if row["metric"] == "accuracy"]
    parent = made_run({}, "sdg", benchmark="synthia-dawn", rows=rows)
    figure = accuracy_over_shots([parent, adapted(parent, benchmark="synthia-dawn")], "synthia-dawn")
    assert figure.get_supylabel() == "mIoU (scales differ)"
    assert points(figure.axes[0], "SDG")[:2] == ([7], [0.4])
