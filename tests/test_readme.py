"""The README's example is run as it stands, on less data and for fewer steps."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import onedomain as od
from tests.conftest import TinyNet

ROOT = Path(__file__).parents[1]


def test_the_python_example_runs(tmp_path, monkeypatch, capsys):
    [example] = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert "steps=600" in example
    monkeypatch.chdir(tmp_path)
    exec(compile(example.replace("steps=600", "steps=2, progress=False"), "README.md", "exec"), {})
    assert capsys.readouterr().out.strip()
    assert (tmp_path / "runs" / "first" / "model.safetensors").exists()


@pytest.mark.parametrize("target", ["demo", "test", "bench"])
def test_the_makefile_has_the_targets_that_are_promised(target):
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_the_method_of_contributing_trains(tiny):
    [example] = re.findall(r"```python\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(example, "CONTRIBUTING.md", "exec"), names)
    method = names["MyMethod"](noise=0.2, steps=40, learning_rate=1e-2)
    run = od.fit(method, tiny, network=TinyNet(), progress=False)
    assert run.method.settings.noise == 0.2
    assert run.history[-1]["loss"] < 1.0
