"""The README's example is run as it stands, on less data and for fewer steps."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

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
