"""What CONTRIBUTING shows is run as it stands: each thing is one file or one declaration, and is then found by name."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
FILES = {
    "method": "methods/my_method.py",
    "adaptation": "methods/adapt/my_adaptation.py",
    "network": "networks/my_net.py",
    "figure": "reporting/figures/minutes.py",
}


def example(what: str) -> str:
    [found] = re.findall(rf"```python {what}\n(.*?)```", PAGE, re.DOTALL)
    return str(found)


@pytest.fixture(scope="module")
def grown(tmp_path_factory) -> Path:
    """A copy of the library with each example in a file of its own, and nothing else changed."""
    folder = tmp_path_factory.mktemp("grown")
    shutil.copytree(ROOT / "src" / "onedomain", folder / "onedomain", ignore=shutil.ignore_patterns("__pycache__"))
    for what, file in FILES.items():
        assert not (folder / "onedomain" / file).exists()
        (folder / "onedomain" / file).write_text(example(what), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def photos(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("photos")
    rng = np.random.default_rng(0)
    for domain, light in (("day", 150), ("night", 70)):
        for place, kind in enumerate(("dark", "bright")):
            (folder / "photos" / domain / kind).mkdir(parents=True)
            for number in range(12):
                pixels = (rng.integers(0, 60, (12, 12, 3)) + light * place).astype(np.uint8)
                Image.fromarray(pixels).save(folder / "photos" / domain / kind / f"{number}.png")
    (folder / "mine.py").write_text(example("benchmark"), encoding="utf-8")
    return folder


def run(grown: Path, folder: Path, *arguments: object) -> str:
    command = [sys.executable, "-m", "onedomain", *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(grown)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_all_of_it_is_used_by_name(grown, photos):
    where = "--benchmark", "mine.py", "--method", "my-method", "--network", "my-net", "--steps", 4, "--threads", 1
    scored = json.loads(run(grown, photos, "train", *where, "--out", "runs/a", "--json"))
    assert (scored["method"], scored["benchmark"], list(scored["domains"])) == ("my-method", "day-to-night", ["night"])
    what = "--target", "night=photos/night", "--shots", 2, "--method", "my-adaptation", "--steps", 3
    adapted = json.loads(run(grown, photos, "adapt", "runs/a", *what, "--out", "runs/b", "--json"))
    assert adapted["method"] == "my-adaptation"
    drawn = json.loads(run(grown, photos, "figures", "runs/a", "--out", "figures", "--json"))
    assert "minutes" in [row["name"] for row in drawn["figures"]]
    assert (photos / "figures" / "minutes.svg").exists()
    assert "my-method" in run(grown, photos, "methods")
    code = "import onedomain as od; print(od.MyMethod(noise=0.3).settings.noise)"
    environment = {**os.environ, "PYTHONPATH": str(grown)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "0.3\n"


def test_a_new_method_stands_in_the_tables_of_the_paper_without_a_row_of_its_own(grown, photos):
    code = """
from onedomain.reporting.reproduce.tables import TABLES
print([row.label for row in TABLES["digits"].rows].count("my-method"))
"""
    environment = {**os.environ, "PYTHONPATH": str(grown)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"


def test_a_row_is_one_declaration():
    names: dict[str, object] = {}
    exec(compile(example("row"), "CONTRIBUTING.md", "exec"), names)
    assert names["row"].name == "sdg-domains-5"
