"""Is it the same run, the same setting, may it be resumed? And the commands that repeat it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from onedomain.errors import UserError
from onedomain.runs.commandline import evaluate_command, onedomain, resume_command, what_to_train
from onedomain.runs.identity import first_difference, identify, refuse_changes
from tests.reporting.page.made import adapted, made_run


def record(run):
    """What a record says of its run."""
    manifest = run.manifest
    told = {"method": manifest.method, "settings": manifest.settings, "usually": manifest.usually}
    told |= {"seed": manifest.seed, "trained_on": manifest.benchmark, "source": manifest.source.fingerprint}
    return told | ({"adaptation": manifest.adaptation.in_short()} if manifest.adaptation else {})


def test_a_record_tells_the_same_as_the_manifest():
    plain = made_run({}, "sdg", beta=0.0)
    for run in (plain, adapted(plain, settings={"vary": 1.0}), adapted(plain, method="ccsa", from_scratch=True)):
        told, known = identify(record(run)), run.identity
        assert told.repetition == known.repetition
        assert told.usually == known.usually
        assert (told.settings, told.from_scratch, told.adapted) == (known.settings, known.from_scratch, known.adapted)
        both = told.facts.keys() & known.facts.keys()
        assert first_difference(told, known, both.__contains__) == ""


def test_seeds_draws_and_bookkeeping_make_no_other_setting():
    run = made_run({}, "sdg")
    for same in (made_run({}, "sdg", seed=3), made_run({}, "sdg", log_every=3)):
        assert same.identity.setting == run.identity.setting
    assert adapted(run, draw=3).identity.setting == adapted(run).identity.setting
    assert first_difference(run.identity, made_run({}, "sdg", seed=3).identity) == ""
    for name, other in {
        "beta": made_run({}, "sdg", beta=0.0),
        "source": made_run({}, "sdg", source="other"),
        "adaptation.method": adapted(run),
    }.items():
        assert other.identity.setting != run.identity.setting
        assert first_difference(other.identity, run.identity) == name


def test_a_setting_that_an_older_run_does_not_know_is_as_usual():
    run, changed = made_run({}, "sdg"), made_run({}, "sdg", retrain="never")
    known = {name: value for name, value in run.manifest.settings.items() if name != "retrain"}
    older = identify(run.manifest.model_copy(update={"settings": known}))
    assert first_difference(older, run.identity) == first_difference(run.identity, older) == ""
    assert first_difference(older, changed.identity) == "retrain"


def test_a_run_may_be_resumed_that_differs_in_nothing():
    run = made_run({}, "sdg")
    refuse_changes(run.manifest, made_run({}, "sdg").manifest)
    for change, message in (({"log_every": 7}, "log_every: is 7 now, and was 50"), ({"seed": 1}, "seed: is 1 now")):
        with pytest.raises(UserError, match=message):
            refuse_changes(run.manifest, made_run({}, "sdg", **change).manifest)
    moved, there = adapted(run), adapted(replace(run, folder="elsewhere"))
    refuse_changes(moved.manifest, there.manifest)  # the parent may have moved
    with pytest.raises(UserError, match="out: holds a trained run, which another command resumes; .*onedomain train"):
        refuse_changes(run.manifest, moved.manifest)


def test_commands_are_written_for_a_shell():
    words = what_to_train("sdg", 1, {"meta": False, "steps": 9}, benchmark=None, size=(8, 9), weights="FILE")
    train = "onedomain train --source DIR --size 8x9 --method sdg --seed 1 --weights FILE --steps 9 --set meta=false"
    assert onedomain("train", words) == train
    assert resume_command(made_run({}).manifest, "a b") == "onedomain train --resume --out 'a b'"
    again = "onedomain adapt runs/erm-0 --target svhn --shots 7 --method fine-tune --seed 0 --resume --out x"
    assert resume_command(adapted(made_run({})).manifest, "x") == again
    assert evaluate_command("x", "own") == "onedomain evaluate x --on NAME=DIR"
    assert evaluate_command("x", "digits") == "onedomain evaluate x --benchmark digits"
