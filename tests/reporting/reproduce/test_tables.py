"""The declarations: that they fit the library, the benchmarks and the paper."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from onedomain.benchmarks import find_benchmark
from onedomain.methods import method_names
from onedomain.reporting.reproduce.paper import PAPER
from onedomain.reporting.reproduce.plan import configured
from onedomain.reporting.reproduce.tables import SCALES, TABLES
from tests.conftest import ROOT


def test_the_digits_table_has_every_method_of_the_library_once() -> None:
    assert sorted(row.key for row in TABLES["digits"].rows) == method_names()


@pytest.mark.parametrize("table", TABLES.values(), ids=list(TABLES))
@pytest.mark.parametrize("scale", SCALES.values(), ids=list(SCALES))
def test_every_row_can_be_configured(table, scale) -> None:
    table, own = table.at(scale)
    assert own.name == scale.name
    for row in table.grid:
        method, changes = configured(row, own, find_benchmark(table.benchmark_of(row)))
        for name, value in row.settings.items():
            assert getattr(method.settings, name) == value
        assert bool(changes) == bool(own.share < 1 or row.settings)


@pytest.mark.parametrize("table", TABLES.values(), ids=list(TABLES))
@pytest.mark.parametrize("scale", SCALES.values(), ids=list(SCALES))
def test_columns_are_domains_of_the_benchmark(table, scale) -> None:
    table, _ = table.at(scale)
    assert len({column.name for column in table.columns}) == len(table.columns)
    several = any(row.tasks for row in table.rows)
    if several:
        tasks = map(find_benchmark, table.benchmarks)
        names = [f"{task.name}/{target}" for task in tasks for target in task.targets]
        assert [column.name for column in table.columns] == [*names, "average"]
    for benchmark in map(find_benchmark, () if several else table.benchmarks):
        assert benchmark.metric == table.metric
        for column in table.columns:
            assert set(column.over) <= {*benchmark.targets, benchmark.source}
            if column.name == "average" and not benchmark.corruptions:
                assert set(column.over) == set(benchmark.targets)


@pytest.mark.parametrize("table", TABLES.values(), ids=list(TABLES))
def test_the_papers_rows_of_a_table_are_in_it(table) -> None:
    """Else its numbers would be looked up under a name that no row has."""
    keys = {row.key for row in table.rows}
    if table.name == "segmentation":
        rows = {(row.benchmark, row.key) for row in table.rows}
        assert rows == {(name, key) for name in PAPER if name.startswith("synthia-") for key in PAPER[name]}
        return
    if table.name == "few-shot":
        varied = {row.key for row in table.rows if row.adaptation and row.adaptation.settings}
        assert keys - varied == {*PAPER["few-shot"], "uncertain-sdg"}
        plain = {re.sub(":[^-]*", "", key) for key in varied}
        assert plain == {row.key for row in table.rows if row.adaptation and not row.adaptation.settings}
        return
    if table.name in ("office-caltech", "pacs"):  # which the paper has not
        assert keys <= set(method_names())
        return
    of = {name: set(PAPER[name]) for name in ("efficiency", "cifar-severity", "cifar-corruptions")}
    of["digits"] = {key for key in PAPER["digits"] if ":" not in key}
    variants = {"sdg", "sdg:beta=0", "sdg:alpha=0"}
    assert of.get(table.name, variants if table.name == "curves" else variants | {"sdg:meta=false"}) <= keys


@pytest.mark.parametrize("name", ["cifar-severity", "cifar-corruptions"])
def test_the_papers_columns_of_cifar_are_in_the_table_and_every_method_is(name) -> None:
    columns = {column.name for column in TABLES[name].columns}
    assert {column for values in PAPER[name].values() for column in values} <= columns
    assert {row.method for row in TABLES[name].rows} == set(method_names())


@pytest.mark.parametrize("name", ["cifar-severity", "cifar-corruptions"])
def test_cifar_at_the_quick_scale_is_the_lite_benchmark_whole_and_says_so(name) -> None:
    full, scale = TABLES[name].at(SCALES["full"])
    assert (full, scale) == (TABLES[name], SCALES["full"])
    quick, scale = TABLES[name].at(SCALES["quick"])
    assert quick.benchmark == "cifar10-c-lite"
    assert quick.title.endswith("on cifar10-c-lite")
    assert scale.reduced
    assert "1,500 steps" in scale.note
    assert quick.at(scale) == (quick, scale)
    benchmark = find_benchmark(quick.benchmark)
    steps = {configured(row, scale, benchmark)[0].settings.steps for row in quick.rows}
    assert steps == {1500}


def test_quick_is_a_tenth_of_the_steps_and_leaves_room_for_all_domains() -> None:
    benchmark = find_benchmark("digits")
    steps = {row.key: configured(row, SCALES["quick"], benchmark)[0].settings.steps for row in TABLES["digits"].rows}
    assert steps.pop("uncertain-sdg") == 150
    assert steps.pop("moved-randconv") == 500
    assert set(steps.values()) == {1000}
    for row in TABLES["curves"].rows:
        settings = configured(row, SCALES["quick"], benchmark)[0].settings
        assert settings.warm_up + (settings.domains - 1) * settings.domain_every <= settings.steps / 2


def test_quick_segmentation_leaves_room_for_all_domains_and_is_small() -> None:
    table, quick = TABLES["segmentation"].at(SCALES["quick"])
    assert table is TABLES["segmentation"]
    assert quick.network == "fcn-small"
    settings = {
        row.method: configured(row, quick, find_benchmark(table.benchmark_of(row)))[0].settings for row in table.rows
    }
    assert [settings[name].steps for name in ("erm", "gud", "sdg", "uncertain-sdg")] == [200, 200, 200, 120]
    sdg, gud = settings["sdg"], settings["gud"]
    assert sdg.warm_up + (sdg.domains - 1) * sdg.domain_every <= 0.6 * sdg.steps
    assert gud.rounds * gud.round_every < gud.steps
    assert (sdg.domain_size, gud.round_size, sdg.wae_epochs) == (60, 60, 5)
    assert table.at(SCALES["full"]) == (table, SCALES["full"])


def test_curves_share_the_run_of_sdg_itself() -> None:
    rows = TABLES["curves"].rows
    assert [row.label for row in rows if row.key == "sdg"] == ["K = 3", "α = 1", "β = 2,000"]
    assert len({row.name for row in rows}) == len({row.key for row in rows}) == len(rows) - 2


def test_tables_are_listed_without_torch() -> None:
    """Shell completion and a wrong name must be quick."""
    program = "import sys; import onedomain.reporting.reproduce.tables; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


def test_help_readme_and_docs_name_every_table(onedomain) -> None:
    root = ROOT
    [listed] = re.findall(r"# the paper's tables: (.*\n.*)\n", (root / "README.md").read_text())
    told = re.sub(r"-\n +", "-", onedomain("reproduce", "--help")[1])  # lines may break at a hyphen
    for text in (told, listed):
        assert set(TABLES) <= set(re.findall(r"[a-z]+(?:-[a-z]+)*", text))
    documented = re.findall(r"^\| `([a-z-]+)` \|", (root / "docs" / "reproduce.md").read_text(), re.MULTILINE)
    assert documented == list(TABLES)
