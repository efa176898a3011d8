"""The study of Optuna that a tuning keeps in its folder, as lines of JSON."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onedomain.data.files import read_file, write_atomically
from onedomain.errors import UserError
from onedomain.runs.trials import STUDY

if TYPE_CHECKING:
    import optuna

BEFORE_PRUNING = 4  # complete trials
FEWEST_FOR_IMPORTANCE = 4


def require_optuna() -> None:
    if find_spec("optuna") is None:
        raise UserError("tune", "optuna is not installed", "pip install 'onedomain[tune]'")


class _Held:
    """The lock of a journal in a folder that this process alone writes to."""

    def acquire(self) -> bool:
        return True

    def release(self) -> None:
        pass


def open_study(folder: Path) -> optuna.Study:
    import optuna
    from optuna.storages.journal import JournalFileBackend

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
    path = folder / STUDY
    if path.is_file():  # a kill may have cut the last line
        content = read_file(path)
        whole = content[: content.rfind(b"\n") + 1]
        if whole != content:
            write_atomically(path, whole)
    try:
        storage = optuna.storages.JournalStorage(JournalFileBackend(str(path), lock_obj=_Held()))  # type: ignore[arg-type]
        pruner = optuna.pruners.MedianPruner(n_startup_trials=BEFORE_PRUNING)
        return optuna.create_study(
            storage=storage, study_name="tune", direction="maximize", pruner=pruner, load_if_exists=True
        )
    except (ValueError, LookupError, TypeError, AttributeError, AssertionError, RecursionError) as error:
        reason = " ".join(str(error).split())[:100]
        raise UserError(str(path), f"cannot be understood ({reason})", "a file written by onedomain tune") from None


def begin_or_go_on(study: optuna.Study, plan: dict[str, Any], usual: Mapping[str, Any] | None) -> None:
    """A tuning goes on as it was begun; a new one begins with the usual settings."""
    now, before = plan, study.user_attrs.get("plan", plan)
    if not isinstance(before, Mapping):
        raise UserError(STUDY, f"has the plan {before!r:.50}", "a file written by onedomain tune")
    for name in {**before, **now}:
        if before.get(name) != now.get(name):
            given = f"is {now.get(name)!r} now, and was {before.get(name)!r}"
            raise UserError(name, given, "as it was to go on, or another --out")
    if "plan" not in study.user_attrs:
        study.set_user_attr("plan", now)
    if usual and not study.get_trials(deepcopy=False):
        study.enqueue_trial(dict(usual))


def importance(study: optuna.Study) -> dict[str, float]:
    """By fANOVA: the share of the variance of the score that each setting has. Empty where that cannot be said."""
    import optuna

    complete = study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.COMPLETE,))
    if len(complete) < FEWEST_FOR_IMPORTANCE or len({trial.value for trial in complete}) == 1:
        return {}
    with suppress(RuntimeError, ValueError):
        found: Mapping[str, float] = optuna.importance.get_param_importances(
            study, evaluator=optuna.importance.FanovaImportanceEvaluator(seed=0)
        )
        return {name: float(share) for name, share in found.items()}
    return {}
