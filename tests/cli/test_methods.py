from __future__ import annotations

import json

from onedomain.methods import method_class, method_names
from onedomain.methods.adapt import adaptation_names

COLUMNS, LINES = 80, 24


def test_all_methods_fit_on_one_screen(onedomain):
    code, out, _ = onedomain("methods")
    assert code == 0
    lines = out.splitlines()
    assert len(lines) < LINES  # the prompt needs one, too
    assert max(map(len, lines)) <= COLUMNS
    rows = {line.split()[0]: line.split() for line in lines if line}
    assert set(method_names()) <= set(rows)
    assert rows["sdg"][1:3] == [f"{method_class('sdg').cost:.1f}", "Adversarial"]
    assert all(name in out for name in adaptation_names())


def test_adaptations_are_listed_apart(onedomain):
    code, out, _ = onedomain("methods", "--adaptations")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()[1:]] == adaptation_names()
    assert max(map(len, out.splitlines())) <= COLUMNS


def test_one_method_is_shown_with_its_settings(onedomain):
    code, out, _ = onedomain("methods", "sdg")
    assert code == 0
    assert max(map(len, out.splitlines())) <= COLUMNS
    kind = method_class("sdg")
    text = " ".join(out.split())
    for told in (kind.summary, kind.citation, "Cost: 4.2", "onedomain train --method sdg"):
        assert told in text
    for name, setting in kind.Settings.model_fields.items():
        assert f"\n  {name}={setting.default}\n" in out
    for told in ("one of input, reconstruction", "True or False", "at least 1, at most 65,536", "above 0"):
        assert told in text


def test_a_name_that_a_method_and_an_adaptation_have_shows_both(onedomain):
    _, out, _ = onedomain("methods", "ccsa")
    assert "onedomain train --method ccsa\n" in out
    assert "onedomain adapt --method ccsa\n" in out
    _, out, _ = onedomain("methods", "fine-tune")
    assert out.startswith("onedomain adapt --method fine-tune\n")
    assert "onedomain train" not in out


def test_methods_as_json(onedomain):
    everything = json.loads(onedomain("methods", "--json")[1])
    assert {"name", "summary", "citation", "cost", "recipes", "settings"} == set(everything["methods"][0])
    assert [row["name"] for row in everything["methods"]] == method_names()
    assert [row["name"] for row in everything["adaptations"]] == adaptation_names()
    [sdg] = [row for row in everything["methods"] if row["name"] == "sdg"]
    assert sdg["settings"]["alpha"]["default"] == 1.0
    assert json.loads(onedomain("methods", "sdg", "--json")[1]) == {"methods": [sdg], "adaptations": []}


def test_an_unknown_method_is_one_line_with_the_nearest_name(onedomain):
    code, out, error = onedomain("methods", "sgd")
    assert (code, out) == (2, "")
    assert error.startswith("onedomain: method: 'sgd' is not known, did you mean 'sdg'?")
    assert error.count("\n") == 1
