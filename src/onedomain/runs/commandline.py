"""The command that makes, resumes, adapts or scores a run.

`DIR`, `FILE` and `RUN` stand for what only the user knows.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from onedomain.runs.layout import OWN
from onedomain.runs.manifest import AdaptationInfo, Manifest


def onedomain(*words: str | Sequence[str] | None) -> str:
    """A command as a shell takes it, of words and lists of words.

    >>> onedomain("evaluate", "runs/my run", ["--on", "night=DIR"])
    "onedomain evaluate 'runs/my run' --on night=DIR"
    """
    parts = [[each] if isinstance(each, str) else each or [] for each in words]
    return shlex.join(["onedomain", *(word for part in parts for word in part)])


def launched(command: str, processes: int) -> str:
    """A command on so many processes of this machine.

    >>> launched("onedomain train", 2)
    'torchrun --nproc-per-node 2 -m onedomain train'
    """
    return command if processes == 1 else f"torchrun --nproc-per-node {processes} -m {command}"


def setting_text(value: object) -> str:
    """A setting's value as `--set` takes it.

    >>> setting_text(False), setting_text(2000.0), setting_text((0.1, 1.0))
    ('false', '2000', '0.1,1')
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.12g}"
    if isinstance(value, (tuple, list)):
        return ",".join(setting_text(part) for part in value)
    return str(value)


def settings_options(changed: Mapping[str, Any]) -> list[str]:
    """
    >>> settings_options({"meta": False, "steps": 9})
    ['--steps', '9', '--set', 'meta=false']
    """
    words = ["--steps", str(changed["steps"])] if "steps" in changed else []
    for name, value in changed.items():
        words += ["--set", f"{name}={setting_text(value)}"] if name != "steps" else []
    return words


def what_to_train(
    method: str,
    seed: int,
    changed: Mapping[str, Any],
    *,
    benchmark: str | None,
    size: tuple[int, int] | None = None,
    network: str | None = None,
    weights: str = "",
) -> list[str]:
    """The options of `onedomain train` that decide the result; no benchmark: on images of the user's own."""
    words = ["--benchmark", benchmark] if benchmark is not None else ["--source", "DIR"]
    words += ["--size", "x".join(map(str, size))] if size and benchmark is None else []
    words += ["--method", method, "--seed", str(seed)]
    words += ["--network", network] if network else []
    words += ["--weights", weights] if weights else []
    return words + settings_options(changed)


def what_to_adapt(
    parent: str, target: str, shots: int, method: str, draw: int, changed: Mapping[str, Any]
) -> list[str]:
    """The words after `onedomain adapt` that decide the result."""
    words = [parent, "--target", target, "--shots", str(shots), "--method", method, "--seed", str(draw)]
    return words + settings_options(changed)


def adapted_again(info: AdaptationInfo, changed: Mapping[str, Any]) -> list[str]:
    """The words after `onedomain adapt` that decide the result of this adaptation."""
    target = info.target if info.benchmark else f"{info.target}=DIR"
    return what_to_adapt(info.parent or "RUN", target, info.shots, info.method, info.draw, changed)


def resume_command(manifest: Manifest, folder: Path | str = "FOLDER") -> str:
    """What to type to resume a run that was stopped."""
    info, out = manifest.adaptation, ["--resume", "--out", str(folder)]
    if info is None:
        return launched(onedomain("train", out), manifest.environment.processes)
    source = ["--source", "DIR"] if info.from_scratch and manifest.benchmark is None else []
    return onedomain("adapt", adapted_again(info, {}), out, source)


def evaluate_command(folder: Path | str, benchmark: str | None, domains: Sequence[str] = ("NAME",)) -> str:
    """What to type to score a run on a benchmark, or on domains of the user's own."""
    own = benchmark in (None, OWN)
    on = [word for name in domains for word in ("--on", f"{name}=DIR")]
    return onedomain("evaluate", str(folder), on if own else ["--benchmark", str(benchmark)])
