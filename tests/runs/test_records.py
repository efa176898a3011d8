from __future__ import annotations

import json

import pytest
import torch

import onedomain as od
from onedomain.errors import UserError
from onedomain.runs.records import common_benchmark, read_run, read_runs
from tests.conftest import TinyNet, make_tiny


def trained(folder, tiny, seed=0, score=True):
    torch.manual_seed(0)
    run = od.fit(od.ERM(log_every=1), tiny, network=TinyNet(), steps=2, seed=seed, out=folder, progress=False)
    if score:
        run.write_records(run.evaluate({"same": tiny, "other": make_tiny(seed=1)}, seen=["same"]), "bench")
    return run


def edit_rows(path, **changes):
    rows = [{**json.loads(line), **changes} for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_a_run_is_read_with_all_that_it_says_of_itself(tiny, tmp_path):
    run = trained(tmp_path / "a", tiny)
    read = read_run(tmp_path / "a")
    assert read.manifest == run.manifest
    assert read.finished
    assert [row["step"] for row in read.metrics] == [1, 2]
    assert read.benchmarks == ("bench",)
    scores = read.scores("bench")
    assert list(scores) == ["same", "other"]
    assert scores["other"]["accuracy"]["unseen"]
    outcomes = read.outcomes("bench")
    assert list(outcomes) == ["same", "other"]
    for domain, outcome in outcomes.items():
        assert outcome.right.mean() == pytest.approx(scores[domain]["accuracy"]["value"])
    assert read.outcomes("elsewhere") == {}


def test_what_is_no_run_folder_is_told_in_a_line(tiny, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "notes.txt").write_text("mine")
    trained(tmp_path / "runs" / "a", tiny)
    for name, message in {
        "empty": "empty: is empty; allowed: run folders",
        "foreign": "foreign: is not a run folder",
        "foreign/notes.txt": "notes.txt: is a file",
        "nowhere": "nowhere: is not there",
        "runs": r"runs: holds 1 runs, and is none itself; allowed: .*runs/\*",
    }.items():
        with pytest.raises(UserError, match=message):
            read_run(tmp_path / name)
    with pytest.raises(UserError, match="runs: none given"):
        read_runs([])
    with pytest.raises(UserError, match="a: is given twice"):
        read_runs([tmp_path / "runs" / "a", tmp_path / "runs" / ".." / "runs" / "a"])


def test_a_run_that_is_still_going_is_told_apart(tiny, tmp_path):
    trained(tmp_path / "a", tiny)
    (tmp_path / "a" / "model.safetensors").unlink()
    with pytest.raises(UserError, match=r"a: has not finished \(2 of 2 steps\); .*onedomain train --resume --out"):
        read_run(tmp_path / "a")
    assert not read_run(tmp_path / "a", unfinished=True).finished


def test_a_run_that_was_not_scored_says_how(tiny, tmp_path):
    trained(tmp_path / "a b", tiny, score=False)
    with pytest.raises(UserError, match=r"has no records; .*onedomain evaluate '.*a b' --on NAME=DIR"):
        read_run(tmp_path / "a b")


def test_records_of_different_versions_are_not_compared(tiny, tmp_path):
    for name in "ab":
        trained(tmp_path / name, tiny)
    edit_rows(tmp_path / "b" / "results.jsonl", onedomain=f"{od.__version__}.post1")
    assert len(read_runs([tmp_path / "a", tmp_path / "b"])) == 2
    edit_rows(tmp_path / "b" / "results.jsonl", onedomain="7.3.0")
    with pytest.raises(UserError, match=r"b: is of onedomain 7.3.0, and .*a of "):
        read_runs([tmp_path / "a", tmp_path / "b"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"domain": "x"\n', "line 1: is no JSON object"),
        ("[1]\n", "line 1: is no JSON object"),
        ('{"domain": "x"}\n', "line 1: metric is not there"),
        ('{"domain": "x", "metric": "accuracy"}', "ends in the middle of a line"),
    ],
)
def test_a_broken_file_is_named(tiny, tmp_path, content, message):
    trained(tmp_path / "a", tiny)
    (tmp_path / "a" / "results.jsonl").write_text(content)
    with pytest.raises(UserError, match=f"results.jsonl: {message}"):
        read_run(tmp_path / "a")
    (tmp_path / "a" / "run.yaml").write_text("{")
    with pytest.raises(UserError, match="run.yaml: cannot be understood"):
        read_run(tmp_path / "a")


def test_answers_on_other_images_than_the_records_are_refused(tiny, tmp_path):
    trained(tmp_path / "a", tiny)
    edit_rows(tmp_path / "a" / "results.jsonl", data="0123")
    with pytest.raises(UserError, match="the answers on same are of other images .*--benchmark bench"):
        read_run(tmp_path / "a").outcomes("bench")


def test_runs_are_compared_on_what_all_were_scored_on(tiny, tmp_path):
    one, two = (trained(tmp_path / name, tiny) for name in "ab")
    one.write_records(one.evaluate({"mine": tiny}))
    runs = read_runs([one.folder, two.folder])
    assert common_benchmark(runs) == "bench"
    assert common_benchmark(runs[:1], "own") == "own"
    with pytest.raises(UserError, match="b: has no records of own, only of bench; .*--on NAME=DIR"):
        common_benchmark(runs, "own")
    edit_rows(two.folder / "results.jsonl", benchmark="another")
    with pytest.raises(UserError, match="the runs were scored on different ones .*a on bench, own; .*b on another"):
        common_benchmark(read_runs([one.folder, two.folder]))
