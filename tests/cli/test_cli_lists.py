"""What the command line says of itself and of data: help, completion, lists."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest


def test_methods_and_benchmarks_are_listed(onedomain):
    assert "erm" in onedomain("methods")[1]
    assert "digits-lite" in onedomain("benchmarks")[1]
    methods = json.loads(onedomain("methods", "--json")[1])["methods"]
    assert {"name", "summary", "citation", "settings"} <= set(methods[0])
    benchmarks = json.loads(onedomain("benchmarks", "--json")[1])["benchmarks"]
    names = ["digits-lite", "digits", "digits-shifted", "digits-composed", "digits-graded", "cifar10-c"]
    assert [row["name"] for row in benchmarks][:6] == names
    adaptations = json.loads(onedomain("methods", "--json")[1])["adaptations"]
    assert [row["name"] for row in adaptations] == ["fine-tune", "ccsa", "fada"]


def test_data_is_listed_checked_and_named_when_missing(onedomain, tmp_path):
    code, out, _ = onedomain("data", "list", "--data", tmp_path, "--json")
    rows = json.loads(out)["data"]
    assert code == 0
    digits = {"mnist", "mnist-m", "svhn", "syn", "usps"}
    assert {row["name"] for row in rows} == digits | {"cifar10", "cifar10-c", "cifar10-c-lite", "synthia", "camvid"}
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


def test_without_arguments_the_help_is_shown(onedomain):
    for arguments in ([], ["data"]):
        code, out, error = onedomain(*arguments)
        assert code == 0
        assert out.count("\n") > 8
        assert error == ""


def test_an_output_that_cannot_be_written_is_one_line():
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([sys.executable, "-m", "onedomain", "benchmarks"], stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 2
    assert done.stderr.decode().startswith("onedomain: output: no space left")


def test_help_is_quick_and_does_not_import_torch():
    code = "import sys; from onedomain import cli; cli.app; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
    begun = time.monotonic()
    printed = subprocess.run([sys.executable, "-m", "onedomain", "--help"], capture_output=True, text=True, check=True)
    # The promise is one second; a busy machine is given five before this is called a failure.
    assert time.monotonic() - begun < 5
    for command in ("demo", "train", "evaluate", "predict", "report", "data", "methods", "benchmarks"):
        assert command in printed.stdout


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("onedomain tr", "train"),
        ("onedomain train --method e", "erm"),
        ("onedomain train -b dig", "digits-lite"),
        ("onedomain train --network le", "lenet"),
        ("onedomain adapt runs/a --target us", "usps"),
        ("onedomain reproduce dig", "digits"),
        ("onedomain corrupt photos --kind fo", "fog"),
        ("onedomain data ch", "check"),
        ("onedomain data check cam", "camvid"),
        ("onedomain data prepare syn", "synthia"),
    ],
)
def test_the_shell_completes_commands_and_names(typed, expected):
    environment = {
        **os.environ,
        "_ONEDOMAIN_COMPLETE": "complete_bash",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(len(typed.split()) - 1),
    }
    done = subprocess.run([sys.executable, "-m", "onedomain"], env=environment, capture_output=True, text=True)
    assert expected in done.stdout.split()
