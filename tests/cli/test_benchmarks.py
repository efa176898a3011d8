from __future__ import annotations

import json


def test_benchmarks_names_95_targets_in_a_few_words(onedomain):
    _, out, _ = onedomain("benchmarks")
    assert out.count("19 corruptions × 5 severities") == 2
    assert "gaussian-noise-3" not in out
    listed = {row["name"]: row for row in json.loads(onedomain("benchmarks", "--json")[1])["benchmarks"]}
    assert len(listed["cifar10-c"]["targets"]) == 95
    assert (listed["cifar10-c"]["network"], listed["cifar10-c-lite"]["network"]) == ("wrn-16-4", "wrn-10-1")


def test_benchmarks_are_listed(onedomain):
    assert "digits-lite" in onedomain("benchmarks")[1]
    benchmarks = json.loads(onedomain("benchmarks", "--json")[1])["benchmarks"]
    names = ["digits-lite", "digits", "digits-shifted", "digits-composed", "digits-graded", "cifar10-c"]
    assert [row["name"] for row in benchmarks][:6] == names
