"""Plans and estimates, on small run folders and data that are made here."""

from __future__ import annotations

import shutil
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from onedomain.benchmarks import Benchmark, find_benchmark
from onedomain.data.domain import Domain
from onedomain.errors import UserError
from onedomain.reporting.reproduce.columns import score
from onedomain.reporting.reproduce.declare import Row, Scale, Table
from onedomain.reporting.reproduce.grid import Request, estimate
from onedomain.reporting.reproduce.plan import Bench, configured, plan
from onedomain.reporting.reproduce.result import tabulate
from onedomain.reporting.reproduce.tables import SCALES, TABLES
from onedomain.training.fit import fit
from tests.conftest import TinyNet, make_tiny
from tests.reporting.reproduce.records import records

ERM, SDG = Row("ERM", "erm"), Row("SDG", "sdg", {"beta": 0.0})
SCALE = Scale("toy", 0.5, {"sdg": {"domain_size": 8}}, note="half")


def benchmark(**changes):
    toy = Benchmark(
        name="toy",
        summary="",
        source="tiny",
        network="lenet",
        train=lambda data: make_tiny(),
        held_out=lambda data: make_tiny(30, seed=1),
        calibration=lambda data: make_tiny(30, seed=1),
        targets={"far": lambda data: make_tiny(30, seed=2, name="far")},
        settings={"erm": {"steps": 8, "batch_size": 6}, "sdg": {"steps": 20}},
    )
    return replace(toy, **changes)


TABLE = Table("toy", "A toy", "toy", (ERM, SDG), (score("far", "far"),))


@pytest.fixture
def bench():
    return Bench.load(benchmark(), Path())


def train(folder, bench, seed=0, score=True, row=ERM, scale=SCALE, **settings):
    """What the grid's process would leave behind, by a smaller network."""
    method = configured(row, scale, bench.benchmark)[0]
    method = type(method)(**{**method.settings.model_dump(), **settings})
    options = {"network": TinyNet(), "embedding": "pool", "seed": seed, "benchmark": "toy", "progress": False}
    run = fit(method, bench.source, out=folder, **options)
    run.seconds = 6.0  # whatever it took
    if score:
        run.write_records(run.evaluate(dict(bench.scored), seen=["tiny"]), "toy")


def states(runs):
    return {run.name: run.state for run in runs}


def test_a_run_a_row_and_seed_with_the_scales_and_the_rows_settings(bench, tmp_path):
    runs = plan(TABLE, SCALE, 2, tmp_path, {"toy": bench})
    assert states(runs) == {"erm-0": "new", "sdg-beta-0-0": "new", "erm-1": "new", "sdg-beta-0-1": "new"}
    assert [run.folder for run in runs][:2] == [tmp_path / "erm-0", tmp_path / "sdg-beta-0-0"]
    erm, sdg = runs[0].method.settings, runs[1].method.settings
    assert (erm.steps, erm.batch_size) == (4, 6)  # half of the benchmark's; the rest as it says
    assert (sdg.steps, sdg.domain_size, sdg.beta) == (10, 8, 0.0)
    assert list(tmp_path.iterdir()) == []


def test_the_whole_protocol_changes_nothing_but_what_the_row_says(bench):
    assert configured(ERM, Scale("full"), bench.benchmark)[1] == {}
    assert configured(SDG, Scale("full"), bench.benchmark)[1] == {"beta": 0.0}


def test_rows_of_the_same_settings_are_one_run(bench, tmp_path):
    table = replace(TABLE, rows=(ERM, Row("the same", "erm", section="again")))
    assert len(plan(table, SCALE, 1, tmp_path, {"toy": bench})) == 1


def test_the_command_says_all_that_decides_the_run(bench, tmp_path):
    run = plan(TABLE, SCALE, 2, tmp_path, {"toy": bench})[3]
    words = list(run.command("/data", "cpu"))
    assert words[1:4] == ["-m", "onedomain", "train"]
    options = dict(pairwise(words))
    assert options["--out"] == str(tmp_path / "sdg-beta-0-1")
    assert (options["--method"], options["--seed"], options["--benchmark"]) == ("sdg", "1", "toy")
    assert (options["--data"], options["--device"], options["--threads"]) == ("/data", "cpu", "1")
    assert [words[place + 1] for place, word in enumerate(words) if word == "--set"] == [
        "domain_size=8",
        "beta=0",
    ]
    assert options["--steps"] == "10"
    assert "--resume" in words


def test_a_finished_and_scored_run_is_done(bench, tmp_path):
    train(tmp_path / "erm-0", bench)
    [erm, sdg] = plan(TABLE, SCALE, 1, tmp_path, {"toy": bench})
    assert (erm.state, sdg.state) == ("done", "new")
    assert erm.records.manifest.seed == 0


def test_an_unfinished_run_goes_on(bench, tmp_path):
    train(tmp_path / "erm-0", bench, score=False, log_every=1)
    (tmp_path / "erm-0" / "model.safetensors").unlink()
    with pytest.raises(UserError, match=r"erm-0: holds a run whose log_every is 1, and here it is 50"):
        plan(TABLE, SCALE, 1, tmp_path, {"toy": bench})
    shutil.rmtree(tmp_path / "erm-0")
    train(tmp_path / "erm-0", bench, score=False)
    (tmp_path / "erm-0" / "model.safetensors").unlink()
    run = plan(TABLE, SCALE, 1, tmp_path, {"toy": bench})[0]
    assert (run.state, run.steps_done) == ("going on", 4)
    assert "train" in run.command(None, None)


def test_what_was_not_scored_or_on_other_images_is_scored_only(bench, tmp_path):
    train(tmp_path / "erm-0", bench, score=False)
    assert plan(TABLE, SCALE, 1, tmp_path, {"toy": bench})[0].state == "to score"
    shutil.rmtree(tmp_path / "erm-0")
    train(tmp_path / "erm-0", bench)
    more = Bench.load(benchmark(targets={**bench.benchmark.targets, "new": lambda data: make_tiny(9, seed=3)}), Path())
    run = plan(TABLE, SCALE, 1, tmp_path, {"toy": more})[0]
    assert run.state == "to score"
    assert run.command("/data", None)[3:7] == ("evaluate", str(tmp_path / "erm-0"), "--benchmark", "toy")
    other = Bench.load(benchmark(targets={"far": lambda data: make_tiny(31, seed=2, name="far")}), Path())
    assert plan(TABLE, SCALE, 1, tmp_path, {"toy": other})[0].state == "to score"


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (
            lambda out, bench: train(out / "erm-0", bench, learning_rate=0.5),
            "learning_rate is 0.5, and here",
        ),
        (lambda out, bench: train(out / "erm-0", bench, seed=3), "seed is 3, and here it is 0"),
        (lambda out, bench: train(out / "erm-0", bench, row=SDG, beta=1.0), "method is 'sdg', and here it is 'erm'"),
        (lambda out, bench: train(out / "erm-0", replace(bench, source=make_tiny(61))), "source data is"),
        (lambda out, bench: (out / "erm-0").write_text("mine"), "is a file"),
        (lambda out, bench: ((out / "erm-0").mkdir(), (out / "erm-0" / "mine.txt").touch()), "exists and is not empty"),
    ],
)
def test_a_folder_with_something_else_is_not_used(bench, tmp_path, prepare, message):
    prepare(tmp_path, bench)
    with pytest.raises(UserError, match=message):
        plan(TABLE, SCALE, 1, tmp_path, {"toy": bench})


def test_a_run_of_a_version_with_other_settings_is_told(bench, tmp_path):
    train(tmp_path / "erm-0", bench)
    manifest = tmp_path / "erm-0" / "run.yaml"
    manifest.write_text(manifest.read_text().replace("  batch_size:", "  gone: 1\n  batch_size:"))
    with pytest.raises(UserError, match="gone is 1, and here it is None"):
        plan(TABLE, SCALE, 1, tmp_path, {"toy": bench})


def test_finished_runs_are_taken_from_elsewhere_if_they_are_the_same(bench, tmp_path):
    train(tmp_path / "other" / "a", bench)
    train(tmp_path / "other" / "b", bench, seed=1, score=False)
    train(tmp_path / "other" / "c", bench, seed=2, learning_rate=0.5)
    for place in ("other", "other/a"):
        runs = plan(TABLE, SCALE, 3, tmp_path / "out", {"toy": bench}, [str(tmp_path / place)])
        assert states(runs)["erm-0"] == "done"
        assert runs[0].folder == tmp_path / "other" / "a"
        assert (states(runs)["erm-1"], states(runs)["erm-2"]) == ("new", "new")
    with pytest.raises(UserError, match="--use: no run in"):
        plan(TABLE, SCALE, 1, tmp_path / "out", {"toy": bench}, [str(tmp_path / "nowhere")])


def test_missing_data_is_told_before_anything(tmp_path):
    def gone(data):
        raise UserError("domain 'far'", "not found", "")

    with pytest.raises(UserError, match="no unseen domain is there"):
        Bench.load(benchmark(targets={"far": gone}), Path())
    with pytest.raises(UserError, match="not found"):
        Bench.load(benchmark(train=gone), Path())
    with pytest.raises(UserError, match="not found"):
        Bench.load(benchmark(calibration=gone), Path())


def test_estimate_from_finished_runs_scales_with_steps_and_costs(bench, tmp_path):
    train(tmp_path / "erm-0", bench)
    runs = plan(TABLE, SCALE, 2, tmp_path, {"toy": bench})
    expected = estimate(runs)
    assert expected.basis == "finished runs: 1"
    assert set(expected.seconds) == {"sdg-beta-0-0", "erm-1", "sdg-beta-0-1"}
    step = 6.0 / (4 * 6 / 32)  # four steps of 6 images, in steps of 32
    scoring = 0.3 * (30 + 30) / 32
    assert expected.seconds["erm-1"] == pytest.approx(step * (4 * 6 / 32 + scoring))
    ascent = 0.9 * 25 * 3 * 8 / 32  # three domains of 8 images, 25 steps each; no auto-encoder
    assert expected.seconds["sdg-beta-0-0"] == pytest.approx(step * (10 * 4.2 + ascent + scoring))
    # One seed after the other, the longest run of each first.
    assert [run.name for run in expected.runs] == ["sdg-beta-0-0", "sdg-beta-0-1", "erm-1"]
    assert expected.together(1) == pytest.approx(sum(expected.seconds.values()))


def test_estimate_of_what_is_left_of_a_run(bench, tmp_path):
    train(tmp_path / "erm-0", bench)
    train(tmp_path / "erm-1", bench, seed=1, score=False)
    whole = estimate(plan(TABLE, SCALE, 3, tmp_path, {"toy": bench})).seconds
    assert 0 < whole["erm-1"] < whole["erm-2"]  # to score, and all to do
    (tmp_path / "erm-1" / "model.safetensors").unlink()
    (tmp_path / "erm-1" / "metrics.jsonl").write_text('{"step": 3, "loss": 1.0}\n')  # of four
    stopped = estimate(plan(TABLE, SCALE, 3, tmp_path, {"toy": bench})).seconds
    scoring = whole["erm-1"]
    assert stopped["erm-1"] == pytest.approx(scoring + (whole["erm-2"] - scoring) / 4)


def test_without_a_finished_run_steps_of_erm_are_measured(bench, tmp_path):
    images = np.zeros((40, 32, 32, 3), np.uint8)
    source = Domain("blank", "train", images, np.arange(40) % 3, ("a", "b", "c"))
    benches = {"toy": replace(bench, source=source)}
    expected = estimate(plan(TABLE, SCALE, 1, tmp_path, benches))
    assert "steps of ERM" in expected.basis
    assert min(expected.seconds.values()) > 0


def test_nothing_is_written_by_planning(bench, tmp_path):
    train(tmp_path / "erm-0", bench)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    estimate(plan(TABLE, SCALE, 2, tmp_path, {"toy": bench}))
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_methods_that_have_a_recipe_are_run_by_it_beside_the_papers_numbers(bench, tmp_path):
    request = Request(TABLES["digits"], SCALES["quick"], seeds=1, recipe="paper")
    rows = {row.method: row for row in request.table.rows}
    assert (rows["sdg"].key, rows["sdg"].name, rows["erm"].name) == ("sdg", "sdg-paper", "erm")
    assert (str(request.folder), request.as_typed()[-14:]) == ("runs/reproduce/digits-quick-paper", "--recipe paper")
    settings = configured(rows["uncertain-sdg"], request.scale, find_benchmark("digits"))[0].settings
    assert (settings.image, settings.learning_rate, settings.steps) == (False, 1e-4, 600)  # a tenth of its own 6,000
    # Its runs are made by it, and belong to no row without it.
    [run] = plan(replace(request.table, rows=(rows["sdg"],)), request.scale, 1, tmp_path, {"digits": bench})
    words = list(run.command(None, None))
    assert "relax=input" not in words
    assert dict(pairwise(words))["--recipe"] == "paper"
    made = records(request.table, request.scale, rows["sdg"], 0, {"svhn": 0.4, "usps": 0.7})
    assert [row.row.name for row in tabulate(request.table, request.scale, made).rows if row.seeds] == ["sdg-paper"]
    assert not any(row.seeds for row in tabulate(TABLES["digits"], request.scale, made).rows)
    with pytest.raises(UserError, match="--recipe: 'papre' is not known, did you mean 'paper'"):
        Request(TABLES["digits"], SCALES["quick"], recipe="papre")
