"""What all commands share: help, completion, and one line for a mistake."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from PIL import Image

from onedomain import cli

COMMANDS = sorted(typer.main.get_command(cli.app).commands)
PROMISED = (
    "demo", "train", "evaluate", "predict", "adapt", "tune", "reproduce", "report", "figures", "corrupt", "data",
    "methods", "benchmarks",
)  # fmt: skip


def test_without_arguments_the_help_is_shown(onedomain):
    for arguments in ([], ["data"]):
        code, out, error = onedomain(*arguments)
        assert code == 0
        assert out.count("\n") > 8
        assert error == ""


HELP_OF = [[], *([name] for name in COMMANDS), *(["data", name] for name in ("list", "check", "prepare"))]
MEASURED = """
import resource, sys
from onedomain.cli import main
try:
    main()
finally:
    used = resource.getrusage(resource.RUSAGE_SELF)
    heavy = {"torch", "numpy", "rich", "matplotlib"} & set(sys.modules)
    print(used.ru_utime + used.ru_stime, *heavy, file=sys.stderr)
"""


@pytest.mark.parametrize("words", HELP_OF, ids=" ".join)
def test_help_is_quick_readable_and_imports_nothing_heavy(words):
    """The promise is one second: here of the processor, for a busy machine may take longer."""
    arguments = [sys.executable, "-c", MEASURED, *words, "--help"]
    environment = {**os.environ, "COLUMNS": "80", "TERMINAL_WIDTH": "80"}
    done = subprocess.run(arguments, capture_output=True, text=True, check=True, env=environment)
    seconds, *heavy = done.stderr.split()
    assert float(seconds) < 1
    assert heavy == []
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert done.stdout.startswith(f"Usage: {' '.join(['onedomain', *words])} ")


def test_the_help_lists_every_command_in_its_group(onedomain):
    _, out, _ = onedomain("--help")
    listed = [line.split()[0] for line in out[out.index("Train:") :].splitlines() if re.match(r"  [a-z]", line)]
    assert sorted(listed) == sorted(COMMANDS)
    assert (
        out.index("\nTrain:\n")
        < out.index("\n  train ")
        < out.index("\nUse a trained run:\n")
        < out.index("\n  adapt ")
    )


def test_options_are_listed_in_groups(onedomain):
    _, out, _ = onedomain("train", "--help")
    groups = [line for line in out.splitlines() if re.fullmatch(r"[A-Z].*:", line)]
    assert groups == ["Options:", "Your own images:", "Run folder:", "Data and device:", "Output:"]


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


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["train", "--method", "emr"], "method: 'emr' is not known, did you mean 'erm'?"),
        (["train", "--benchmark", "digit"], "benchmark: 'digit' is not known, did you mean 'digits'?"),
        (["train", "--set", "lerning_rate=1"], "setting: 'lerning_rate' is not known, did you mean 'learning_rate'?"),
        (["train", "--set", "batch_size=0"], "batch_size: got '0'; allowed: greater than or equal to 1"),
        (["train", "--set", "batch_size"], "--set: got 'batch_size'; allowed: name=value"),
        (["train", "--steps", "0"], "steps: got 0; allowed: greater than or equal to 1"),
        (["train", "--steps", "ten"], "--steps"),
        (["train", "--steps", "2", "--set", "steps=3"], "--steps: given together with --set steps"),
        (["train", "--seed", "-1"], "seed: got -1; allowed: a whole number from 0"),
        (["train", "--threads", "0"], "--threads: got 0; allowed: a whole number from 1"),
        (["train", "--threads", "2147483648"], "--threads: got 2147483648; allowed: a whole number from 1 to 1024"),
        (["train", "--set", "log_every=9999999999"], "log_every: got '9999999999'; allowed: at most 1,000,000,000"),
        (["train", "--source", ""], "--source: is empty; allowed: a value"),
        (["train", "--set", ""], "--set: is empty; allowed: a value"),
        (["evaluate", ""], "RUN: is empty; allowed: a value"),
        (["train", "--source", "images", "--size", "3000000000x3000000000"], "size: got (3000000000, 3000000000)"),
        (["reproduce", "digits", "--dry-run", "--seeds", "10000000"], "--seeds: got 10000000; allowed: a whole number"),
        (["reproduce", "digits", "--dry-run", "--jobs", "9" * 30], "--jobs: got 9999"),
        (["train", "--device", "tpu"], "device: 'tpu' is not there"),
        (["train", "--source", "nowhere"], "nowhere: is not a folder"),
        (["train", "--source", ".", "--benchmark", "digits"], "--source: given together with --benchmark"),
        (["train", "--source", ".", "--size", "big"], "--size: got 'big'; allowed: HEIGHTxWIDTH"),
        (["train", "--data", "nowhere", "--benchmark", "digits"], "--data: 'nowhere' is not a folder"),
        (["train", "--out", "file"], "out: file is a file; allowed: a new or empty folder"),
        (["train", "--out", "full"], "out: full exists and is not empty; allowed: a new or empty folder"),
        (["train", "--out", "file/below"], "file/below: cannot be written"),
        (["train", "--sed", "1"], "No such option: --sed"),
        (["trian"], "No such command 'trian'"),
        (["evaluate", "nowhere"], "nowhere: is not a run folder"),
        (["evaluate"], "Missing argument 'RUN'"),
        (["predict", "nowhere", "x.png"], "nowhere: is not a run folder"),
        (["data", "check", "mnits"], "data: 'mnits' is not known, did you mean 'mnist'?"),
        (["data", "prepare", "mnits"], "data: 'mnits' is not known, did you mean 'mnist'?"),
    ],
)
def test_a_mistake_ends_in_one_line_and_code_2_and_writes_nothing(onedomain, tmp_path, monkeypatch, arguments, line):
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("mine")
    Path("full").mkdir()
    Path("full/file").write_text("mine")
    for label in "ab":
        Path("images", label).mkdir(parents=True)
        Image.new("RGB", (9, 9)).save(Path("images", label, "0.png"))
    before = sorted(map(str, Path().rglob("*")))
    code, out, error = onedomain(*arguments)
    assert code == 2
    assert line in error
    assert error.count("\n") == 1
    assert out == ""
    assert sorted(map(str, Path().rglob("*"))) == before


def test_an_output_that_cannot_be_written_is_one_line():
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([sys.executable, "-m", "onedomain", "benchmarks"], stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 2
    assert done.stderr.decode().startswith("onedomain: output: no space left")
