"""The rooms of the house and who may know whom: each imports only those above it, and never in a circle."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import onedomain

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


def loaded_by(*modules: str) -> set[str]:
    """What is loaded when these are imported in a new process."""
    code = f"import sys, {', '.join(modules)}\nprint(*sys.modules)"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


def test_reading_run_folders_needs_no_torch_no_methods_and_no_networks() -> None:
    loaded = loaded_by(*(name for name in FILES if room(name) == "runs"))
    assert not {name for name in loaded if name == "torch" or name.startswith(("onedomain.methods", "onedomain.net"))}
