"""Every row of a run folder fits its schema, or is named with its file, line and field."""

from __future__ import annotations

import json

import pytest

from onedomain.data.files import to_json_lines
from onedomain.errors import UserError
from onedomain.runs.rows import read_metrics, read_records

RECORD = {"domain": "svhn", "metric": "accuracy", "value": 0.5, "method": "erm", "seed": 0, "settings": {"steps": 9}}


def test_rows_come_back_as_they_stand_there(tmp_path):
    path = tmp_path / "results.jsonl"
    rows = [RECORD, {**RECORD, "metric": "nll", "value": 3, "later": {"of": "another version"}}]
    path.write_text(to_json_lines(rows))
    assert read_records(path) == rows
    assert read_records(tmp_path / "none.jsonl") == []


def test_metrics_survive_a_cut_last_line_and_records_are_whole(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text(
        to_json_lines([{"step": 1, "loss": 0.5}, {"step": 2, "domain": "augmented-1", "mean": 1}]) + '{"ste'
    )
    assert [row["step"] for row in read_metrics(path)] == [1, 2]
    path.write_text(to_json_lines([RECORD]) + '{"dom')
    with pytest.raises(UserError, match="ends in the middle of a line"):
        read_records(path)


RECORDS = {
    "a value that is a text": ({"value": "0.5"}, "value got '0.5'; allowed: a valid number"),
    "a value that is not finite": ({"value": float("nan")}, "value got nan"),
    "a value out of all range": ({"value": 1e300}, "value got 1e\\+300"),
    "an accuracy above 1": ({"value": 1.5}, "value of accuracy from 0 to 1"),
    "a bound that is a list": ({"low": [0]}, "low got"),
    "a count below 0": ({"count": -1}, "count got -1"),
    "a seed that is a share": ({"seed": 0.5}, "seed got 0.5"),
    "unseen as a text": ({"unseen": "yes"}, "unseen got 'yes'"),
    "a domain that is a number": ({"domain": 7}, "domain got 7"),
    "settings that are a list": ({"settings": []}, "settings got"),
    "a setting that is a mapping": ({"settings": {"steps": {}}}, "settings.steps"),
    "an unknown corruption": ({"corruption": "rain", "severity": 1}, "corruption got 'rain'"),
    "a corruption without severity": ({"corruption": "fog"}, "corruption and severity together"),
    "an adaptation without a target": ({"adaptation": {"method": "fine-tune"}}, "adaptation.settings is not there"),
    "no metric": ({"metric": None}, "metric got None"),
    "half of a letter": ({"note": "\ud800"}, "is no JSON"),
}


@pytest.mark.parametrize(("change", "told"), RECORDS.values(), ids=RECORDS)
def test_a_record_that_does_not_fit_is_named_by_line_and_field(tmp_path, change, told):
    path = tmp_path / "results.jsonl"
    path.write_text(to_json_lines([RECORD, {**RECORD, **change}]))
    with pytest.raises(UserError, match=f"results.jsonl: line 2: .*{told}|results.jsonl: line 2: {told}"):
        read_records(path)


@pytest.mark.parametrize(
    "content",
    [b"hello\n", b"\xff\xfe\n", b"[1]\n", b"[" * 100_000 + b"\n", b'{"step": 1' + b"0" * 5000 + b"}\n", b"{}\n"],
)
def test_lines_of_another_kind_are_refused(tmp_path, content):
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(content)
    with pytest.raises(UserError, match="metrics.jsonl: "):
        read_metrics(path)


@pytest.mark.parametrize("change", [{"step": -1}, {"step": "1"}, {"loss": "low"}, {"seconds": -1}, {"domain": 1}])
def test_a_line_of_metrics_that_does_not_fit_is_named(tmp_path, change):
    path = tmp_path / "metrics.jsonl"
    path.write_text(json.dumps({"step": 1, **change}) + "\n")
    with pytest.raises(UserError, match=f"metrics.jsonl: line 1: {next(iter(change))} "):
        read_metrics(path)
