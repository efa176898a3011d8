"""How to train and score a run once more: the exact commands."""

from __future__ import annotations

import shlex

from onedomain.outcomes import OWN
from onedomain.records import RunRecords
from onedomain.report.contenders import changed_settings
from onedomain.reproduce.paper import setting_text


def commands_to_repeat(run: RunRecords) -> list[str]:
    """What to type, one line a command; `DIR` stands for a folder of images that only the user knows.

    Empty for a run that was trained in Python with a network or a method of the user's own.
    """
    manifest = run.manifest
    settings = changed_settings(run)
    out = f"{run.folder}-again"
    words = ["onedomain", "train"]
    if manifest.benchmark is not None:
        words += ["--benchmark", manifest.benchmark]
    else:
        height, width, _ = manifest.source.image_shape
        words += ["--source", "DIR", "--size", f"{height}x{width}"]
    words += ["--method", manifest.method, "--seed", str(manifest.seed)]
    words += ["--steps", str(settings.pop("steps"))] if "steps" in settings else []
    for name, value in settings.items():
        words += ["--set", f"{name}={setting_text(value)}"]
    words += [] if manifest.environment.device == "cpu" else ["--device", manifest.environment.device]
    words += ["--threads", str(manifest.environment.threads), "--out", out]
    lines = [shlex.join(words)]
    for benchmark in run.benchmarks:
        if benchmark == OWN:
            named = [word for domain in run.scores(OWN) for word in ("--on", f"{domain}=DIR")]
            lines.append(shlex.join(["onedomain", "evaluate", out, *named]))
        elif benchmark != manifest.benchmark:
            lines.append(shlex.join(["onedomain", "evaluate", out, "--benchmark", benchmark]))
    return lines


def repeatable(run: RunRecords) -> bool:
    """Whether the command line can train it: the library's method and network, on a benchmark or a folder."""
    from onedomain.methods import method_names

    return run.manifest.network.own is None and run.manifest.method in method_names()
