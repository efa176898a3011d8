from __future__ import annotations

from statistics import fmean

import pytest

from onedomain.data.corruptions import KINDS
from onedomain.methods import method_names
from onedomain.reporting.reproduce.paper import PAPER, paper_average, paper_value, variant

DOMAINS = ("svhn", "mnist-m", "syn", "usps")


@pytest.mark.parametrize("method", PAPER["digits"])
def test_printed_averages_are_the_means_of_the_printed_domains(method: str) -> None:
    """A slip in copying one of the five numbers of a row would show here."""
    values = PAPER["digits"][method]
    assert values["average"] == pytest.approx(fmean(values[domain] for domain in DOMAINS), abs=0.0051)


@pytest.mark.parametrize("method", PAPER["cifar-corruptions"])
def test_averages_and_mce_of_the_corruptions_follow_from_their_printed_accuracies(method: str) -> None:
    values, erm = PAPER["cifar-corruptions"][method], PAPER["cifar-corruptions"]["erm"]
    accuracies = {kind: values[f"{kind}-5"] for kind in KINDS}
    assert round(fmean(accuracies.values()), 2) == values["average"]
    ratios = [(100 - accuracy) / (100 - erm[f"{kind}-5"]) for kind, accuracy in accuracies.items()]
    assert round(fmean(ratios), 2) == values["mce"]


@pytest.mark.parametrize("method", PAPER["cifar-severity"])
def test_level_5_of_the_severities_is_the_average_of_the_corruptions_rounded(method: str) -> None:
    printed = paper_value("cifar-severity", method, "severity-5")
    assert printed == pytest.approx(paper_value("cifar-corruptions", method, "average"), abs=0.051)


@pytest.mark.parametrize("source", ["synthia-dawn", "synthia-fog", "synthia-spring"])
@pytest.mark.parametrize("method", ["erm", "gud", "sdg", "uncertain-sdg"])
def test_printed_averages_of_segmentation_are_the_means_of_ten_conditions(source: str, method: str) -> None:
    values = dict(PAPER[source][method])
    printed = values.pop("average")
    assert len(values) == 10
    assert printed == pytest.approx(fmean(values.values()), abs=0.0051)
    assert paper_average(source, method, values) == printed
    assert paper_average(source, method, ["new-york-fog", "old-town-fog"]) != printed


def test_efficiency_repeats_the_rounded_averages_of_the_digits_table() -> None:
    for method in ("sdg", "uncertain-sdg"):
        printed = paper_value("efficiency", method, "average")
        assert printed == pytest.approx(paper_value("digits", method, "average"), abs=0.051)
    assert paper_value("efficiency", "sdg", "training_parameters") == 7.02
    assert paper_value("efficiency", "uncertain-sdg", "minutes") == 16.4


def test_every_method_of_the_paper_is_one_of_the_library() -> None:
    for rows in [rows for table, rows in PAPER.items() if table != "few-shot"]:
        assert {method.partition(":")[0] for method in rows} <= set(method_names())


def test_what_the_paper_does_not_say_is_none() -> None:
    assert paper_value("digits", "augmix", "svhn") is None
    assert paper_value("digits", "sdg", "minutes") is None
    assert paper_value("no such table", "sdg", "svhn") is None
    assert paper_average("digits", "augmix", DOMAINS) is None
    assert paper_average("digits", "sdg", ["svhn", "another"]) is None
    assert paper_average("digits", "sdg", []) is None


def test_average_is_the_printed_one_over_all_domains_and_the_mean_over_some() -> None:
    assert paper_average("digits", "gud", DOMAINS) == 54.62  # printed; the mean is 54.625
    assert paper_average("efficiency", "sdg", DOMAINS) == 59.5
    assert paper_average("efficiency", "sdg", ["svhn", "mnist-m", "usps"]) == pytest.approx(63.01)


def test_variants_are_named_by_their_settings_in_order() -> None:
    assert variant("sdg", {"meta": False, "beta": 0.0}) == "sdg:beta=0,meta=false"
    assert variant("sdg", {"beta": 500}) == "sdg:beta=500"


@pytest.mark.parametrize("method", [method for method, row in PAPER["few-shot"].items() if "average" in row])
def test_printed_averages_of_the_tasks_are_their_means(method: str) -> None:
    row = PAPER["few-shot"][method]
    values = [value for task, value in row.items() if task != "average"]
    assert len(values) == 3
    assert row["average"] == pytest.approx(fmean(values), abs=0.0051)
