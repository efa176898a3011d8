"""Run folders and records that do not say what is usual are completed where commands read them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from onedomain.benchmarks.protocol.recipes import completed, completed_record
from tests.reporting.page.made import adapted, made_run


def without(run):
    """As an older version wrote it."""
    info = run.manifest.adaptation
    older = None if info is None else info.model_copy(update={"usually": None})
    return replace(run, manifest=run.manifest.model_copy(update={"usually": None, "adaptation": older}))


PLAIN = made_run({}, "sdg", benchmark="digits-lite", beta=0.0)
RUNS = (PLAIN, adapted(PLAIN, settings={"vary": 1.0}), adapted(PLAIN, method="ccsa", from_scratch=True))


@pytest.mark.parametrize("run", RUNS)
def test_what_is_usual_is_found_again(run):
    assert without(run).manifest.usually is None
    assert completed(without(run)).manifest == completed(run).manifest == run.manifest


def test_what_the_library_does_not_know_stays_unknown():
    assert completed(without(made_run({}, "MyOwn"))).manifest.usually is None
    assert completed(without(made_run({}, "sdg", gone=1))).manifest.usually is None


@pytest.mark.parametrize("run", RUNS)
def test_records_are_completed_alike(run):
    manifest = run.manifest
    row = {"method": manifest.method, "settings": manifest.settings, "trained_on": manifest.benchmark}
    if manifest.adaptation:
        told = manifest.adaptation.in_short()
        row["adaptation"] = {name: value for name, value in told.items() if name != "usually"}
        assert completed_record(row)["adaptation"] == told
    assert completed_record(row)["usually"] == manifest.usually
    assert completed_record({"domain": "made"}) == {"domain": "made"}
