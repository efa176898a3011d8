"""Another package, installed by pip, adds a method, an adaptation, a network and a benchmark: all are found by name."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ENTRY_POINTS = """\
[onedomain.methods]
their-method = their_package:TheirMethod
broken-method = their_package:nothing_of_this_name

[onedomain.methods.adapt]
their-adaptation = their_package:TheirAdaptation

[onedomain.networks]
their-network = their_package:TheirNetwork

[onedomain.benchmarks]
their-benchmark = their_package:BENCHMARK
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """A wheel of the package, installed by pip into a folder of its own."""
    folder = tmp_path_factory.mktemp("theirs")
    wheel, about = folder / "their_package-1.0-py3-none-any.whl", "their_package-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.write(Path(__file__).with_name("their_package.py"), "their_package.py")
        archive.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: their-package\nVersion: 1.0\n")
        archive.writestr(
            f"{about}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{about}/entry_points.txt", ENTRY_POINTS)
        archive.writestr(f"{about}/RECORD", "")
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-index",
        "--no-deps",
        "--target",
        folder / "site",
        wheel,
    ]
    subprocess.run(pip, check=True)
    return folder / "site"


def onedomain(site: Path, folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(map(str, (site, ROOT / "src")))
    command = [sys.executable, "-m", "onedomain", *map(str, arguments)]
    return subprocess.run(
        command, cwd=folder, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False
    )


def test_what_another_package_declares_is_used_by_name(installed, tmp_path):
    def run(*arguments: object) -> str:
        done = onedomain(installed, tmp_path, *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    where = "--benchmark", "their-benchmark", "--threads", 1
    scored = json.loads(run("train", *where, "--method", "their-method", "--out", "a", "--json"))
    assert (scored["method"], list(scored["domains"])) == ("their-method", ["blocks", "others"])
    manifest = (tmp_path / "a" / "run.yaml").read_text()
    assert "steps: 5" in manifest  # the recipe, for a method that the benchmark does not know
    assert "name: their-network" in manifest
    run("train", *where, "--method", "erm", "--out", "b")
    run("report", "a", "b", "--out", "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "their-method" in page
    assert "bright thirds" in page
    adapted = json.loads(
        run("adapt", "a", "--target", "others", "--shots", 2, "--method", "their-adaptation", "--json")
    )
    assert (adapted["method"], adapted["settings"]["steps"]) == ("their-adaptation", 4)
    listed = onedomain(installed, tmp_path, "methods", "--json")
    assert "'broken-method' (their_package:nothing_of_this_name) cannot be imported" in listed.stderr
    names = [row["name"] for row in json.loads(listed.stdout)["methods"]]
    assert "their-method" in names
    assert "broken-method" not in names
    assert "their-adaptation" in [row["name"] for row in json.loads(listed.stdout)["adaptations"]]
    assert "their-benchmark" in [row["name"] for row in json.loads(run("benchmarks", "--json"))["benchmarks"]]


def test_a_package_that_is_broken_is_named_in_one_line_and_the_others_still_work(installed, tmp_path):
    done = onedomain(installed, tmp_path, "train", "--method", "broken-method", "--out", "a")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "onedomain.methods: 'broken-method' (their_package:nothing_of_this_name) cannot be imported" in done.stderr
    assert not (tmp_path / "a").exists()
