from __future__ import annotations

import pytest

from onedomain.errors import UserError
from onedomain.settings import Settings, parse_assignments, parse_settings


def test_texts_become_what_the_field_needs():
    settings = parse_settings(Settings, {"steps": "200", "learning_rate": "1e-3"})
    assert (settings.steps, settings.learning_rate) == (200, 1e-3)


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ({"lerning_rate": 1}, "did you mean 'learning_rate'?"),
        ({"steps": 0}, "steps: got 0; allowed: greater than or equal to 1"),
        ({"steps": "many"}, "steps: got 'many'; allowed: a valid integer"),
        ({"learning_rate": "nan"}, "learning_rate: got"),
        ({"learning_rate": -1}, "learning_rate: got -1; allowed: greater than 0"),
    ],
)
def test_bad_values_name_the_field_the_value_and_what_is_allowed(values, line):
    with pytest.raises(UserError, match=".+") as caught:
        parse_settings(Settings, values)
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["alpha", "=3", ""])
def test_an_assignment_needs_a_name_and_a_value(text):
    with pytest.raises(UserError, match="name=value"):
        parse_assignments([text])


def test_a_setting_given_twice_is_refused():
    with pytest.raises(UserError, match="'steps' is given twice"):
        parse_assignments(["steps=1", "steps=2"])


def test_a_value_may_hold_an_equals_sign():
    assert parse_assignments(["note=a=b"]) == {"note": "a=b"}
