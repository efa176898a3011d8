from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import matplotlib as mpl
import pytest
from PIL import Image
from typer.testing import CliRunner

from onedomain.cli import app
from onedomain.errors import UserError
from onedomain.reporting.figures import figures_for, kinds, png, save, svg
from onedomain.reporting.figures.style import COLOURS, look, percent
from onedomain.runs.records import read_run
from tests.reporting.figures.made import add_outcome, full_run, make_run


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return [
        full_run(folder / "erm", "erm"),
        full_run(folder / "sdg", "sdg"),
        full_run(folder / "k1", "sdg", settings={"domains": 1}),
        full_run(folder / "u", "uncertain-sdg"),
    ]


@pytest.fixture(scope="module")
def drawn(runs):
    return figures_for(runs, "bench")


def test_everything_is_drawn_that_there_are_records_for(drawn):
    names = [each.name for each in drawn]
    single = ["augmented-images-sdg", "augmented-images-sdg-domains-1"]
    # Labels of pixels have masks and classes, these domains are no corruptions, and no run was adapted.
    left_out = ["masks", "classes", "shots", "severity"]
    expected = [kind.name for kind in kinds() if kind.name not in left_out]
    place = expected.index("augmented-images")
    assert names == [*expected[:place], *single, *expected[place + 1 :]]
    assert [name for name, _ in drawn.skipped] == left_out
    assert all(re.fullmatch(r"[a-z0-9-]+", name) for name in names)
    assert all(each.title and each.explanation.endswith(".") for each in drawn)


@pytest.mark.filterwarnings("error")
def test_names_of_any_length_and_script_leave_room_for_the_figure(tmp_path):
    domains = ["s", "夜景" * 40, "a-name-without-a-single-space-" * 5, "$x^{ & <b>$"]
    make_run(tmp_path / ("folder-" * 20), accuracies=dict.fromkeys(domains, 0.5), scores=dict.fromkeys(domains, 1.0))
    for domain in domains:
        add_outcome(tmp_path / ("folder-" * 20), domain, unseen=domain != "s")
    make_run(tmp_path / "b", settings={"steps": 5, "batch_size": 3, "log_every": 2})
    figures = figures_for([read_run(folder) for folder in sorted(tmp_path.iterdir())], "bench")
    for each in figures:
        png(each.figure)
        assert all(axes.get_position().width > 0.25 for axes in each.figure.axes)
    assert "夜景" in svg(figures[0].figure)


def test_what_cannot_be_drawn_is_named_with_its_reason(tmp_path):
    make_run(tmp_path / "a")
    figures = figures_for([read_run(tmp_path / "a")], "bench")
    assert [each.name for each in figures] == ["accuracy"]
    reasons = dict(figures.skipped)
    assert set(reasons) == {kind.name for kind in kinds()} - {"accuracy"}
    assert "score the runs again" in reasons["reliability"]


@pytest.fixture(scope="module")
def saved(drawn, tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    return [save(each.figure, folder, each.name) for each in drawn]


def test_files_are_whole_small_and_legible_on_a_phone(saved):
    for vector, pixels in saved:
        root = ElementTree.parse(vector).getroot()
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert vector.stat().st_size < 400_000
        image = Image.open(pixels)
        image.load()
        assert image.width == 960
        texts = root.iter("{http://www.w3.org/2000/svg}text")
        sizes = [float(size) for element in texts for size in re.findall(r"([\d.]+)px", element.get("style", ""))]
        width = float(root.get("viewBox").split()[2])
        assert not sizes or min(sizes) * 360 / width >= 8  # pixels on a phone of 360


def test_the_same_records_give_the_same_files(runs, drawn, saved):
    chosen = [0, 4]  # one of records alone, one by t-SNE
    by_name = {kind.name: kind for kind in kinds()}
    for place in chosen:
        again = by_name[drawn[place].name].draw(runs, "bench")
        again.set_label(drawn[place].name)
        assert png(again) == saved[place][1].read_bytes()  # in another order than before: the layout has settled
        assert saved[place][0].read_text().endswith(svg(again))
    assert "<dc:date>" not in svg(again)


def test_figures_of_one_page_share_no_ids(saved):
    texts = [vector.read_text() for vector, _ in saved]
    ids = [set(re.findall(r'\bid="([^"]+)"', text)) for text in texts]
    every = [name for names in ids for name in names]
    assert len(every) == len(set(every))
    for text, names in zip(texts, ids, strict=True):
        assert set(re.findall(r"(?:url\(#|href=\"#)([^\")]+)", text)) <= names


def test_matplotlibs_own_settings_are_left_alone_and_do_not_matter(runs):
    plain = svg(kinds()[0].draw(runs[:1], "bench"))
    with mpl.rc_context({"font.size": 30, "lines.linewidth": 9}):
        before = dict(mpl.rcParams)
        assert svg(kinds()[0].draw(runs[:1], "bench")) == plain
        assert dict(mpl.rcParams) == before


def test_pyplot_is_never_imported(runs):
    code = (
        "import sys; from onedomain.reporting.figures import kinds, svg, png\n"
        "from onedomain.runs.records import read_runs\n"
        f"figure = kinds()[0].draw(read_runs([{str(runs[0].folder)!r}]), 'bench'); svg(figure), png(figure)\n"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_no_two_look_alike_without_colour():
    looks = [look(place) for place in range(2 * len(COLOURS))]
    filled = [(each["marker"], each["markerfacecolor"] == "white") for each in looks]
    assert len(set(filled)) == len(looks)
    assert len({str(each["linestyle"]) for each in looks[:7]}) == 7


def test_ticks_say_percent_without_needless_digits():
    assert [percent(value) for value in (0, 0.005, 0.25, 1)] == ["0%", "0.5%", "25%", "100%"]


def test_the_command_writes_files_and_says_what_was_left_out(tmp_path):
    make_run(tmp_path / "a")
    out = tmp_path / "figures"
    result = CliRunner().invoke(app, ["figures", str(tmp_path / "a"), "--out", str(out), "--json"])
    assert result.exit_code == 0, result.output
    said = json.loads(result.stdout)
    assert said["benchmark"] == "bench"
    assert said["figures"][0]["files"] == [str(out / "accuracy.svg"), str(out / "accuracy.png")]
    assert {row["name"] for row in said["left_out"]} == {kind.name for kind in kinds()} - {"accuracy"}
    assert {path.name for path in out.iterdir()} == {"accuracy.svg", "accuracy.png"}
    plain = CliRunner().invoke(app, ["figures", str(tmp_path / "a"), "--out", str(out)])
    assert "accuracy.svg" in plain.stdout
    assert "left out: settings: needs runs of sdg" in plain.stderr


def test_the_command_refuses_what_it_cannot_draw(tmp_path):
    make_run(tmp_path / "a")
    for arguments, message in (
        ([str(tmp_path)], "holds 1 runs"),
        ([str(tmp_path / "a"), "--benchmark", "digits"], "has no records of digits, only of bench"),
    ):
        result = CliRunner().invoke(app, ["figures", *arguments, "--out", str(tmp_path / "out")])
        assert isinstance(result.exception, UserError)
        assert message in str(result.exception)
    assert not (tmp_path / "out").exists()


def test_a_figure_without_text_stays_a_picture():
    from matplotlib.figure import Figure

    assert Image.open(io.BytesIO(png(Figure(figsize=(1, 1))))).size == (200, 200)
