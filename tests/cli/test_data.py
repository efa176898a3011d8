from __future__ import annotations

import json


def test_data_is_listed_checked_and_named_when_missing(onedomain, tmp_path):
    code, out, _ = onedomain("data", "list", "--data", tmp_path, "--json")
    rows = json.loads(out)["data"]
    assert code == 0
    digits = {"mnist", "mnist-m", "svhn", "syn", "usps"}
    assert {row["name"] for row in rows} > digits | {"cifar10-c", "synthia", "camvid", "office-caltech"}
    assert all(row["state"] == "missing" for row in rows)
    assert "onedomain data prepare svhn" in onedomain("data", "list", "--data", tmp_path)[1].replace("\n", " ")
    code, _, error = onedomain("train", "--benchmark", "digits", "--data", tmp_path, "--out", tmp_path / "run")
    assert code == 2
    assert "mnist" in error
    assert "onedomain data prepare mnist" in error
    assert not (tmp_path / "run").exists()


def test_broken_data_is_found(onedomain, tmp_path):
    (tmp_path / "digits").mkdir()
    (tmp_path / "digits" / "usps.npz").write_bytes(b"PK not really")
    code, out, error = onedomain("data", "check", "usps", "--data", tmp_path)
    assert code == 2
    assert "broken" in out
    assert "data: broken: usps" in error
