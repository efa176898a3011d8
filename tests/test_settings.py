from __future__ import annotations

import pytest
from pydantic import model_validator

from onedomain.errors import UserError
from onedomain.methods.adapt.fada import FADASettings
from onedomain.methods.uncertain_sdg import UncertainSDGSettings
from onedomain.settings import Settings, given_settings, parse_assignments, parse_settings


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


class Never(Settings):
    @model_validator(mode="after")
    def _never(self):
        raise ValueError("a better day")


@pytest.mark.parametrize(
    ("kind", "values", "line"),
    [
        (
            UncertainSDGSettings,
            {"perturbed_weight": "0", "mixup_weight": 0, "rho": 0.5, "steps": 20},
            "perturbed_weight, mixup_weight: got 0, 0; allowed: perturbed_weight and mixup_weight not both 0",
        ),
        (
            FADASettings,
            {"steps": 500, "hidden": 3},
            "steps, pretrain_steps, discriminator_steps: got 500, 1000, 100; "
            "allowed: more steps than pretrain_steps and discriminator_steps together",
        ),
        (Never, {"steps": 20}, "settings: do not go together; allowed: a better day"),
    ],
)
def test_values_that_do_not_go_together_are_named_and_no_others(kind, values, line):
    with pytest.raises(UserError) as caught:
        parse_settings(kind, values)
    assert str(caught.value) == line


def test_steps_are_given_once():
    assert given_settings(["alpha=1"], 2) == {"alpha": "1", "steps": 2}
    assert given_settings(["steps=1.5"], None) == {"steps": "1.5"}
    with pytest.raises(UserError, match="--steps: given together with --set steps; allowed: one of them"):
        given_settings(["steps=1.5"], 2)


@pytest.mark.parametrize("text", ["alpha", "=3", ""])
def test_an_assignment_needs_a_name_and_a_value(text):
    with pytest.raises(UserError, match="name=value"):
        parse_assignments([text])


def test_a_setting_given_twice_is_refused():
    with pytest.raises(UserError, match="'steps' is given twice"):
        parse_assignments(["steps=1", "steps=2"])


def test_a_value_may_hold_an_equals_sign():
    assert parse_assignments(["note=a=b"]) == {"note": "a=b"}
