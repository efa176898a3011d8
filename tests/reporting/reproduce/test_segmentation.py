"""`reproduce segmentation` on a folder in SYNTHIA's layout: a few frames, twelve runs of two steps."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import numpy as np
import pytest

from onedomain import cli
from onedomain.data.datasets import synthia
from onedomain.data.datasets.synthia import CONDITIONS, SOURCE_CONDITIONS
from onedomain.reporting.reproduce import grid, tables
from onedomain.runs.job import Ended
from onedomain.runs.sweep import Grid
from tests.data.frames import make_sequence, write_mask

LITTLE = {"gud": {"ascent_steps": 1}, "sdg": {"ascent_steps": 1, "domains": 1, "wae_epochs": 1}}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    for condition in SOURCE_CONDITIONS:
        make_sequence(folder, "highway", condition, count=4)
    for place, condition in enumerate(CONDITIONS):
        make_sequence(folder, "new-york", condition, count=1, shift=10 * place)
        make_sequence(folder, "old-town", condition, count=1, shift=15 * place)
    return folder


def in_this_process(jobs, parallel, shown, keep_open, place):
    """What the grid's processes would do, without a start of Python for each."""
    for job in jobs:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(sys, "argv", ["onedomain", *job.command[3:]])
            with pytest.raises(SystemExit) as stopped:
                cli.main()
        assert stopped.value.code == 0, job.command
    return Grid([Ended(job.name, job.log, 0.0) for job in jobs], stopped=False)


def test_a_folder_in_synthias_layout_goes_through_the_quick_table(data, tmp_path, monkeypatch, onedomain):
    table, quick = tables.TABLES["segmentation"].at(tables.SCALES["quick"])
    settings = {
        row.method: {**quick.settings.get(row.method, {}), **LITTLE.get(row.method, {}), "steps": 2, "batch_size": 2}
        for row in table.rows
    }
    settings["sdg"] |= {"warm_up": 0, "domain_every": 1, "augmented_batch": 2}
    short = replace(table, scales=(replace(quick, settings=settings),))
    monkeypatch.setitem(tables.TABLES, "segmentation", short)
    monkeypatch.setattr(grid, "run_jobs", in_this_process)
    monkeypatch.setattr(synthia, "SIZE", (32, 48))
    arguments = ["reproduce", "segmentation", "--scale", "quick", "--seeds", "1", "--data", data, "--out", tmp_path]
    code, _, err = onedomain(*arguments)
    assert code == 0, err
    assert (tmp_path / "synthia-fog-uncertain-sdg-0" / "outcomes" / "synthia-fog").is_dir()
    draw, likewise = err.splitlines()[-1].removeprefix("Figures: onedomain figures ").split("  ")
    assert draw == f"{tmp_path}/synthia-dawn*-0 --out {tmp_path / 'figures' / 'synthia-dawn'}"
    assert likewise == "(likewise for synthia-fog, synthia-spring)"
    assert {path.name for path in tmp_path.glob("synthia-dawn*-0")} >= {"synthia-dawn-erm-0", "synthia-dawn-sdg-0"}
    result = json.loads((tmp_path / "table.json").read_text())
    assert (result["metric"], result["benchmarks"]) == ("miou", ["synthia-dawn", "synthia-fog", "synthia-spring"])
    assert len(result["rows"]) == 12
    for row in result["rows"]:
        assert all(0 <= cell["mean"] <= 100 for cell in row["cells"].values()), row
        assert row["cells"]["average"]["paper"] > 18
        known = [cell["mean"] for name, cell in row["cells"].items() if name != "average"]
        assert row["cells"]["average"]["mean"] == pytest.approx(sum(known) / 10)
    manifest = (tmp_path / "synthia-dawn-erm-0" / "run.yaml").read_text()
    assert "name: fcn-small" in manifest
    text = (tmp_path / "table.md").read_text()
    assert "mIoU" in text.splitlines()[0]
    assert "REDUCED" in text.splitlines()[0]
    assert "Reduced protocol: the network fcn-small instead of FCN-32s" in text
    assert "**Highway/Spring**" in text

    code, out, err = onedomain(*arguments, "--json")  # nothing is run again
    assert code == 0, err
    assert "12 of 12 runs are there already" in err
    assert json.loads(out)["rows"] == result["rows"]

    label = next((data / "synthia" / synthia.SEQUENCES["old-town-fog"] / "GT").rglob("*.png"))
    write_mask(label, np.full((12, 20), 13))  # one file that cannot be read leaves a gap, and costs no run
    code, _, err = onedomain(*arguments)
    assert code == 0, err
    assert "not scored on every domain: synthia-dawn-erm-0, " in err
    again = json.loads((tmp_path / "table.json").read_text())
    assert [row["seeds"] for row in again["rows"]] == [[0]] * 12
    [note] = [note for note in again["notes"] if "not scored" in note]
    assert note == "OT fog: not scored, for want of data."
