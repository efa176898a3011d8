"""The rooms of the house and who may know whom: each imports only those above it, and never in a circle."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import onedomain
from tests.reporting.page.made import made_outcome, made_rows, made_run, write_run

PACKAGE = Path(onedomain.__file__).parent
ROOT = {"__init__", "__main__", "_version", "errors", "settings"}
ROOMS = (
    "data",
    "networks",
    "components",
    "methods",
    "evaluation",
    "runs",
    "training",
    "benchmarks",
    "reporting",
    "cli",
)


def module_name(path: Path) -> str:
    parts = ("onedomain", *path.relative_to(PACKAGE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module_name(path): path for path in PACKAGE.rglob("*.py")}


def imports(name: str) -> set[str]:
    """All modules of the library that a module imports, also inside functions; not those for type checkers alone."""
    tree = ast.parse(FILES[name].read_text(encoding="utf-8"))
    for_types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    found = set()
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name} has a relative import"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.add(inner if inner in FILES else str(node.module))
    return {each for each in found if each in FILES and each != name}


def room(name: str) -> str:
    return name.split(".")[1] if "." in name else ""


def test_the_root_holds_only_what_every_room_needs() -> None:
    assert {path.stem for path in PACKAGE.glob("*.py")} == ROOT
    folders = {path.name for path in PACKAGE.iterdir() if path.is_dir() and any(path.glob("*.py"))}
    assert folders == set(ROOMS)


def test_no_room_imports_one_below_it() -> None:
    steps_back = [
        f"{name} imports {other}"
        for name in FILES
        if room(name) in ROOMS
        for other in imports(name)
        if room(other) in ROOMS and ROOMS.index(room(other)) > ROOMS.index(room(name))
    ]
    assert steps_back == []


def test_no_room_imports_the_front_door() -> None:
    through = [f"{name} imports onedomain" for name in FILES if room(name) in ROOMS and "onedomain" in imports(name)]
    assert through == []


def test_imports_never_go_round_in_a_circle() -> None:
    graph = {name: imports(name) for name in FILES}
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, " → ".join([*path[path.index(name) :], name])
        if name not in done:
            for other in sorted(graph[name]):
                visit(other, (*path, name))
            done.add(name)

    for name in graph:
        visit(name, ())


def loaded_by(code: str) -> set[str]:
    """What is loaded when this code has run in a new process."""
    program = f"{code}\nimport sys\nprint('loaded:', *sys.modules)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(ran.stdout.rpartition("loaded:")[2].split())


def heavy(loaded: set[str]) -> set[str]:
    """What reading and reporting must not load: torch, methods, networks and training."""
    rooms = tuple(f"onedomain.{name}" for name in ("networks", "training", "components", "methods"))
    return {name for name in loaded if name == "torch" or name.startswith(rooms)} - {
        "onedomain.methods",  # the registries, which import a method when it is asked for
        "onedomain.methods.adapt",
    }


def test_reading_run_folders_needs_no_torch_no_methods_and_no_networks() -> None:
    loaded = loaded_by(f"import {', '.join(name for name in FILES if room(name) == 'runs')}")
    assert heavy(loaded) | {name for name in loaded if name.startswith("onedomain.methods")} == set()


def test_reporting_loads_no_torch_no_methods_and_no_networks() -> None:
    assert heavy(loaded_by(f"import {', '.join(name for name in FILES if room(name) == 'reporting')}")) == set()


REPORTED = """
import sys
from pathlib import Path
from onedomain.runs.rows import read_records
from onedomain.reporting.figures import figures_for, save
from onedomain.reporting.page.page import write_report
from onedomain.reporting.reproduce.formats import write_files
from onedomain.reporting.reproduce.result import tabulate
from onedomain.reporting.reproduce.tables import SCALES, TABLES
from onedomain.runs.records import read_runs
here = Path({here!r})
folders = sorted(here.glob("run-*"))
assert write_report(folders, here / "report.html").stat().st_size
drawn = figures_for(read_runs(folders), "digits")
assert "reliability" in [each.name for each in drawn]
save(drawn[0].figure, here, "first")
rows = [row for folder in folders for row in read_records(folder / "results.jsonl")]
result = tabulate(TABLES["digits"], SCALES["full"], rows, command="x")
assert [row.seeds for row in result.rows if row.row.key == "erm"] == [(0, 1)]
write_files(result, here)
"""


def test_a_report_figures_and_a_table_are_made_without_torch(tmp_path: Path) -> None:
    for seed in (0, 1):
        of_run = {"method": "erm", "seed": seed, "settings": {"steps": 10}, "usually": {}, "trained_on": "digits"}
        rows = made_rows({"mnist": 0.9, "svhn": 0.5}, "digits", seen=["mnist"], source="source-print", **of_run)
        outcome = made_outcome("svhn", [0] * 20, [0, 1] * 10, [0.1, 0.9] * 10)
        run = made_run({}, "erm", seed, "digits", rows=rows)
        write_run(tmp_path / f"run-{seed}", run, [outcome], benchmark="digits")
    assert heavy(loaded_by(REPORTED.replace("{here!r}", repr(str(tmp_path))))) == set()
