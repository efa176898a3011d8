"""Tables of adapted runs: several tasks in a row, parents that draws share, and rows that are only quoted."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

import onedomain as od
from onedomain.benchmarks import BENCHMARKS, Benchmark, family_of
from onedomain.errors import UserError
from onedomain.reporting.render.latex import as_latex
from onedomain.reporting.render.markdown import as_markdown
from onedomain.reporting.reproduce.columns import average_over, score
from onedomain.reporting.reproduce.declare import Adapting, Row, Scale, Table
from onedomain.reporting.reproduce.formats import as_csv, as_json, tables
from onedomain.reporting.reproduce.grid import estimate
from onedomain.reporting.reproduce.plan import Bench, adapting, configured, plan
from onedomain.reporting.reproduce.result import tabulate
from onedomain.reporting.reproduce.tables import SCALES, TABLES
from onedomain.training.adapt import adapt
from onedomain.training.begin import set_otherwise
from onedomain.training.fit import fit
from tests.conftest import TinyNet, make_tiny
from tests.reporting.reproduce.records import records

FEW_SHOT, FULL = TABLES["few-shot"], SCALES["full"]
QUICK = FEW_SHOT.at(SCALES["quick"])[1]
TASKS = ("toy-a", "toy-b")
ERM = Row("ERM", "erm", tasks=TASKS)
TUNED = replace(ERM, adaptation=Adapting("fine-tune", 2))
SCRATCH = Row("CCSA", "erm", tasks=TASKS, adaptation=Adapting("ccsa", 3))
SCORES = (score("toy-a/far", "A"), score("toy-b/far", "B"))
COLUMNS = (*SCORES, average_over(*SCORES))
TABLE = Table("toy", "A toy", "toy", (Row("Quoted", "quoted", not_run="all"), SCRATCH, ERM, TUNED), COLUMNS)
HALF = Scale("half", 0.5, note="half")


def bench(name: str) -> Bench:
    number = 10 * TASKS.index(name)
    benchmark = Benchmark(
        name=name,
        summary="",
        source="tiny",
        network="lenet",
        train=lambda data: make_tiny(seed=number),
        held_out=lambda data: make_tiny(30, seed=number + 1),
        calibration=lambda data: make_tiny(30, seed=number + 1),
        targets={"far": lambda data: make_tiny(30, seed=number + 2, name="far")},
        target_train={"far": lambda data: make_tiny(30, seed=number + 3, name="far")},
        settings={"erm": {"steps": 8, "batch_size": 6}},
    )
    return Bench.load(benchmark, Path(), adapting=True)


@pytest.fixture
def benches():
    return {name: bench(name) for name in TASKS}


def train(folder, of):
    method = configured(ERM, HALF, of.benchmark)[0]
    options = {"network": TinyNet(), "embedding": "pool", "benchmark": of.benchmark.name, "progress": False}
    run = fit(method, of.source, out=folder, **options)
    run.write_records(run.evaluate(dict(of.scored), seen=["tiny"]), of.benchmark.name)
    return run


def draw(run, of, folder, shots=2, number=0, **options):
    """What the grid's process would leave behind."""
    pool, known = of.benchmark.target_train["far"](Path()), {"source": of.source, "held_out": of.scored["tiny"]}
    options = {"test": of.scored["far"], "benchmark": of.benchmark.name, "progress": False, **known, **options}
    adapt(run, pool, shots, seed=number, out=folder, **options)


def test_parents_are_trained_once_and_every_draw_is_adapted_from_them(benches, tmp_path):
    runs = plan(TABLE, HALF, 2, tmp_path, benches)
    assert [run.name for run in runs] == [
        *(f"{task}-erm-0" for task in TASKS),
        *(f"{task}-erm-{how}-0" for how in ("ccsa-3", "fine-tune-2") for task in TASKS),
        *(f"{task}-erm-{how}-1" for how in ("ccsa-3", "fine-tune-2") for task in TASKS),
    ]
    parent, tuned = runs[0], runs[-2]
    assert tuned.parent is parent
    assert (tuned.method.name, tuned.method.settings.steps) == ("fine-tune", 38)  # 100 times 6 images
    assert runs[2].method.settings.steps == 1250  # of 2,500
    assert TABLE.benchmarks == TASKS


def test_the_command_adapts_the_parent(benches, tmp_path):
    runs = {run.name: run for run in plan(TABLE, HALF, 2, tmp_path, benches)}
    words = list(runs["toy-b-erm-ccsa-3-1"].command("/data", "cpu"))
    assert words[1:5] == ["-m", "onedomain", "adapt", str(tmp_path / "toy-b-erm-0")]
    options = dict(pairwise(words))
    assert (options["--target"], options["--shots"], options["--method"]) == ("far", "3", "ccsa")
    assert (options["--seed"], options["--out"]) == ("1", str(tmp_path / "toy-b-erm-ccsa-3-1"))
    assert (options["--steps"], options["--data"], options["--threads"]) == ("1250", "/data", "1")
    assert "--resume" in words
    assert "--steps" not in runs["toy-a-erm-fine-tune-2-0"].command(None, None)  # a rule finds the steps


def test_finished_draws_are_done_here_and_elsewhere(benches, tmp_path):
    of, name = benches["toy-a"], "toy-a-erm-fine-tune-2-0"
    parent = train(tmp_path / "there" / "toy-a-erm-0", of)
    draw(parent, of, tmp_path / "there" / name)
    for out, use in ((tmp_path / "there", []), (tmp_path / "here", [str(tmp_path / "there")])):
        runs = {run.name: run for run in plan(TABLE, HALF, 2, out, benches, use)}
        assert {name for name, run in runs.items() if run.state == "done"} == {"toy-a-erm-0", name}
        assert runs[name].folder == tmp_path / "there" / name
        waiting = estimate(list(runs.values()))
        assert waiting.runs[0].name == "toy-b-erm-0"  # whatever is adapted comes after it
        assert waiting.basis == "finished runs: 2"
    (tmp_path / "there" / name / "before.jsonl").unlink()
    run = next(run for run in plan(TABLE, HALF, 1, tmp_path / "there", benches) if run.name == name)
    assert run.state == "to score"
    assert "adapt" in run.command(None, None)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"shots": 3}, "shots is 3, and here it is 2"),
        ({"number": 4}, "draw is 4, and here it is 0"),
        ({"steps": 5}, "steps is 5, and here it is 38"),
        ({"method": "ccsa", "steps": 5}, "adaptation.method is 'ccsa', and here it is 'fine-tune'"),
        ({"parent": "adapted"}, "adaptation.before.method is 'fine-tune', and here it is None"),
    ],
)
def test_another_adaptation_in_its_folder_is_told(benches, tmp_path, changes, message):
    of = benches["toy-a"]
    parent = train(tmp_path / "toy-a-erm-0", of)
    if changes.pop("parent", ""):
        draw(parent, of, tmp_path / "first", number=1)
        parent = od.load(tmp_path / "first", network=TinyNet())
    draw(parent, of, tmp_path / "toy-a-erm-fine-tune-2-0", **changes)
    with pytest.raises(UserError, match=message):
        plan(TABLE, HALF, 1, tmp_path, benches)


def test_a_trained_run_is_no_adapted_one(benches, tmp_path):
    train(tmp_path / "toy-a-erm-0", benches["toy-a"])
    shutil.copytree(tmp_path / "toy-a-erm-0", tmp_path / "toy-a-erm-fine-tune-2-0")
    with pytest.raises(UserError, match="fine-tune-2-0: holds a run that was not adapted"):
        plan(TABLE, HALF, 1, tmp_path, benches)


def test_missing_training_images_of_the_target_are_told_before_anything():
    def gone(data):
        raise UserError("domain 'far'", "not found", "")

    benchmark = replace(bench("toy-a").benchmark, target_train={"far": gone})
    assert Bench.load(benchmark, Path()).drawn == {}
    with pytest.raises(UserError, match="not found"):
        Bench.load(benchmark, Path(), adapting=True)


def told(row: Row, scale: Scale, number: int, **changes):
    """How records of the paper's tasks tell an adaptation."""
    assert row.adaptation is not None
    method, _ = adapting(row.adaptation, scale, 10 * row.adaptation.shots)
    drawn = {"drawn": 10 * row.adaptation.shots, **changes}["drawn"]
    usually = set_otherwise(method, type(method)().planned(drawn))
    settings = method.settings.model_dump(mode="json")
    return {
        "method": method.name, "settings": settings, "usually": usually, "from_scratch": method.from_scratch,
        "target": "mnist", "shots": row.adaptation.shots, "draw": number,
        "drawn": 10 * row.adaptation.shots, "adapted_before": False, "parent": f"somewhere-{number}", **changes,
    }  # fmt: skip


def found(key: str) -> Row:
    return next(row for row in FEW_SHOT.rows if row.key == key)


def made(key: str, values: tuple[float, ...], number: int = 0, scale: Scale = FULL, **changes):
    """The records of a row on the three tasks, or on the first of them."""
    rows = []
    for part, value in zip(found(key).parts, values, strict=False):
        target = next(iter(BENCHMARKS[part.benchmark].targets))
        seed, how = number, {}
        if part.adaptation is not None:
            seed, how = 0, {"adaptation": told(part, scale, number, **{"target": target, **changes})}
        source = part.benchmark.split("-")[2]
        rows += records(FEW_SHOT, scale, part, seed, {source: 0.99, target: value}, **how)
    return rows


def test_tasks_are_columns_and_draws_are_averaged():
    rows = [*made("sdg", (0.7, 0.3, 0.6)), *made("sdg>fine-tune-7", (0.90, 0.50, 0.88))]
    rows += made("sdg>fine-tune-7", (0.94, 0.54, 0.92), number=1)
    result = tabulate(FEW_SHOT, FULL, rows, seeds=range(2), command="x")
    by_key = {row.row.key: row for row in result.rows}
    tuned, trained, quoted = by_key["sdg>fine-tune-7"], by_key["sdg"], by_key["dirt-t"]
    assert tuned.cells["few-shot-usps-mnist/mnist"].values == (90.0, 94.0)
    assert tuned.cells["few-shot-svhn-mnist/mnist"].mean == pytest.approx(90)
    assert tuned.cells["average"].values == pytest.approx((76.0, 80.0))
    assert tuned.cells["average"].paper == 79.52
    assert (tuned.steps, tuned.seeds, tuned.asked) == (438, (0, 1), (0, 1))
    assert (trained.steps, trained.seeds, trained.asked) == (10_000, (0,), (0,))
    assert trained.cells["average"].mean == pytest.approx(160 / 3)
    assert (by_key["uncertain-sdg"].seeds, by_key["uncertain-sdg"].asked) == ((), (0,))
    assert (quoted.steps, quoted.asked, quoted.cells["average"].paper) == (None, (), None)
    assert quoted.cells["few-shot-mnist-svhn/svhn"].paper == 54.50
    assert any("deviations over draws" in note for note in result.notes)


def test_a_draw_without_all_tasks_is_in_no_average():
    rows = [*made("sdg>fine-tune-7", (0.9, 0.5, 0.8)), *made("sdg>fine-tune-7", (0.8,), number=1)]
    result = tabulate(FEW_SHOT, FULL, rows, command="x")
    cells = next(row.cells for row in result.rows if row.row.key == "sdg>fine-tune-7")
    assert cells["few-shot-usps-mnist/mnist"].values == (90.0, 80.0)
    assert cells["average"].values == pytest.approx((220 / 3,))


@pytest.mark.parametrize(
    "changes",
    [{"shots": 5}, {"method": "ccsa"}, {"adapted_before": True}, {"target": "syn"}, {"drawn": 60}],
)
def test_other_adaptations_are_left_out(changes):
    result = tabulate(FEW_SHOT, FULL, made("sdg>fine-tune-7", (0.9, 0.5, 0.8)), command="x")
    assert next(row.seeds for row in result.rows if row.row.key == "sdg>fine-tune-7") == (0,)
    other = made("sdg>fine-tune-7", (0.9,), **changes)
    assert not any(row.seeds for row in tabulate(FEW_SHOT, FULL, other, command="x").rows)


def test_a_parent_with_other_settings_is_left_out_unless_nothing_of_it_is_left():
    quick = [*made("sdg>fine-tune-7", (0.9,), scale=QUICK), *made("sdg>fada-7", (0.8,))]
    for row in quick:
        if row.get("adaptation", {}).get("method") == "fada":
            row.update({name: row["adaptation"][name] for name in ("method", "settings", "usually")})
    result = tabulate(FEW_SHOT, FULL, quick, command="x")
    assert [row.row.key for row in result.rows if row.seeds] == ["sdg>fada-7"]


def test_adapted_runs_are_in_no_table_of_trained_ones():
    digits = TABLES["digits"]
    row = Row("SDG", "sdg")
    how = told(replace(row, adaptation=Adapting("fine-tune", 7)), FULL, 0, target="svhn")
    rows = records(digits, FULL, row, 0, {"svhn": 0.9}, adaptation=how)
    assert not any(each.seeds for each in tabulate(digits, FULL, rows, command="x").rows)
    both = [*rows, *records(digits, FULL, row, 0, {"svhn": 0.3})]
    sdg = next(each for each in tabulate(digits, FULL, both, command="x").rows if each.row.key == "sdg")
    assert sdg.cells["svhn"].values == (30.0,)


def test_all_formats_say_shots_draws_and_what_was_not_run():
    rows = [*made("sdg", (0.7, 0.3, 0.6), scale=QUICK), *made("sdg>fine-tune-7", (0.9, 0.5, 0.8), scale=QUICK)]
    result = tabulate(FEW_SHOT, QUICK, rows, seeds=range(3), command="x")
    text = as_markdown(*tables(result))
    assert "| method | shots | steps | draws | minutes | U→M (%) | M→S (%) | S→M (%) | average (%) |" in text
    assert "| I2I | all, unlabelled | – | – | – | not run | not run | not run | not run |" in text
    assert "| *paper* |  |  |  |  | *92.20* |  | *92.10* |  |" in text
    assert "| SDG | 0 | 1,000 | 1 | 1.5 | 70.00 | 30.00 | 60.00 | 53.33 |" in text
    assert "| SDG | 7 | 438 | 1 of 3 | 1.5 | 90.00 | 50.00 | 80.00 | 73.33 |" in text
    assert r"U$\to$M" in as_latex(*tables(result))
    assert "not run" in as_csv(result)
    data = as_json(result)
    assert [row["run"] for row in data["rows"]][:6] == [False] * 5 + [True]
    assert data["rows"][5]["adaptation"] == "fada"
    assert json.dumps(data)


def test_the_table_is_that_of_the_family_at_quick_a_tenth():
    assert FEW_SHOT.benchmarks == tuple(task.name for task in family_of(FEW_SHOT.benchmark))
    steps = {}
    for row in FEW_SHOT.grid:
        if row.adaptation:
            steps[row.key] = adapting(row.adaptation, QUICK, 10 * row.adaptation.shots)[0].settings.steps
        else:
            steps[row.key] = configured(row, QUICK, BENCHMARKS[row.benchmark])[0].settings.steps
    wanted, plain, varied = {"sdg": 1000, "uncertain-sdg": 150}, "", ":invert=0.25,vary=1"
    for how in (plain, varied):
        wanted |= {f"sdg>fada{how}-7": 250, f"sdg>ccsa{how}-10": 250}
        for method in ("sdg", "uncertain-sdg"):
            wanted |= {f"{method}>fine-tune{how}-7": 438, f"{method}>fine-tune{how}-10": 625}
    assert steps == wanted


def test_varied_and_plain_draws_are_rows_of_their_own():
    varied = "sdg>fine-tune:invert=0.25,vary=1-7"
    rows = [*made("sdg>fine-tune-7", (0.9, 0.5, 0.8)), *made(varied, (0.7, 0.4, 0.6))]
    result = tabulate(FEW_SHOT, FULL, rows, command="x")
    means = {row.row.key: row.cells["average"].mean for row in result.rows if row.cells["average"].mean is not None}
    assert means == pytest.approx({"sdg>fine-tune-7": 220 / 3, varied: 170 / 3})
    assert next(row for row in result.rows if row.row.key == varied).cells["average"].paper is None
