from __future__ import annotations

import shlex
from dataclasses import replace

from onedomain.benchmarks.protocol.request import DEMO_BENCHMARK
from onedomain.methods import method_class
from onedomain.reporting.page.runs import commands_to_repeat, repeatable, what_words_stand_for
from onedomain.settings import parse_assignments, parse_settings
from tests.reporting.page.made import adapted, made_rows, made_run


def test_only_what_differs_from_the_benchmarks_settings_is_set():
    settings = method_class("sdg")(steps=600, learning_rate=1e-3).settings.model_dump(mode="json")
    run = made_run({"a": 0.5}, "sdg", seed=3, benchmark=DEMO_BENCHMARK, folder="runs/a b", **settings)
    [line] = commands_to_repeat(run)
    words = shlex.split(line)
    assert words[:4] == ["onedomain", "train", "--benchmark", "digits-lite"]
    assert words[-4:] == ["--threads", "1", "--out", "runs/a b-again"]
    assert "--steps" not in words
    assert "learning_rate=0.001" not in words
    assert "domain_size=5000" in words  # the benchmark's is 600


def test_the_command_gives_the_same_settings_again():
    changed = {"beta": 0.0, "steps": 77, "meta": False, "prior": "mmd"}
    run = made_run({"a": 0.5}, "sdg", benchmark="digits", **changed)
    words = shlex.split(commands_to_repeat(run)[0])
    given = parse_assignments([words[place + 1] for place, word in enumerate(words) if word == "--set"])
    given["steps"] = words[words.index("--steps") + 1]
    assert parse_settings(method_class("sdg").Settings, given).model_dump(mode="json") == run.manifest.settings


def test_another_device_and_several_processes_are_named():
    run = made_run({"a": 0.5})
    assert "--device" not in commands_to_repeat(run)[0]
    environment = run.manifest.environment.model_copy(update={"device": "cuda:1", "processes": 4})
    elsewhere = replace(run, manifest=run.manifest.model_copy(update={"environment": environment}))
    command = commands_to_repeat(elsewhere)[0]
    assert "--device cuda:1 --threads 1" in command
    assert command.startswith("torchrun --nproc-per-node 4 -m onedomain train")


def test_other_benchmarks_and_own_folders_are_scored_by_commands_of_their_own():
    rows = [*made_rows({"a": 0.5}, "bench"), *made_rows({"b": 0.5}, "digits"), *made_rows({"night sky": 0.5}, "own")]
    lines = commands_to_repeat(made_run({}, rows=rows))
    assert lines[1:] == [
        "onedomain evaluate runs/erm-0-again --benchmark digits",
        "onedomain evaluate runs/erm-0-again --on 'night sky=DIR'",
    ]


def test_own_images_are_named_by_the_user_and_own_networks_need_python():
    run = made_run({"a": 0.5}, rows=made_rows({"a": 0.5}, "own"), benchmark=None)
    assert commands_to_repeat(run)[0].startswith("onedomain train --source DIR --size 8x8 --method erm")
    assert repeatable(run)
    assert not repeatable(made_run({"a": 0.5}, own="MyNet"))
    assert not repeatable(made_run({"a": 0.5}, "MyMethod"))


def test_another_network_than_the_benchmarks_is_named_and_so_are_weights():
    run = made_run({"a": 0.5}, benchmark="digits")
    assert "--network" not in commands_to_repeat(run)[0]
    network = run.manifest.network.model_copy(update={"name": "wrn-10-1", "weights": "w.pth sha256:0123"})
    other = replace(run, manifest=run.manifest.model_copy(update={"network": network}))
    assert "--seed 0 --network wrn-10-1 --weights FILE" in commands_to_repeat(other)[0]
    assert what_words_stand_for(other) == "FILE stands for the weights that training began with: w.pth sha256:0123."
    assert what_words_stand_for(run) == ""
    for name, weights in (
        ("efficientnet-lite0", "efficientnet-lite0-57.pth sha256:0"),
        ("hf:a/b", "model.safetensors"),
    ):
        network = run.manifest.network.model_copy(update={"name": name, "weights": weights})
        came_with = replace(run, manifest=run.manifest.model_copy(update={"network": network}))
        assert commands_to_repeat(came_with)[0].split(" --threads")[0].endswith(f"--seed 0 --network {name}")
    network = network.model_copy(update={"weights": None})
    random = replace(run, manifest=run.manifest.model_copy(update={"network": network}))
    assert "--network hf:a/b --weights none" in commands_to_repeat(random)[0]


def test_an_adapted_run_is_adapted_again():
    parent = made_run({"svhn": 0.5}, "sdg", seed=3, benchmark="digits", folder="runs/a")
    scored = [*made_rows({"svhn": 0.5, "home": 0.9}, "digits"), *made_rows({"near": 0.4}, "digits-shifted")]
    run = adapted(parent, scored, folder="runs/a-7", draw=2, settings={"steps": 9, "learning_rate": 0.01})
    again = "onedomain adapt runs/a --target svhn --shots 7 --method fine-tune --seed 2 --steps 9"
    assert commands_to_repeat(run) == [
        f"{again} --set learning_rate=0.01 --threads 1 --out runs/a-7-again",
        "onedomain evaluate runs/a-7-again --benchmark digits-shifted",
    ]
    scratch = adapted(parent, made_rows({"svhn": 0.5}, "digits"), method="fada", from_scratch=True, shots=10)
    again = "onedomain adapt runs/a --target svhn --shots 10 --method fada --seed 0 --threads 1"
    assert commands_to_repeat(scratch)[0].startswith(again)
    assert repeatable(run)
    assert repeatable(scratch)
    assert not repeatable(adapted(parent, method="MyAdaptation"))


def test_adapting_to_own_images_names_what_the_user_must():
    parent = made_run({}, benchmark=None, rows=[])
    own = {"target": "night", "benchmark": None, "parent": None}
    rows = made_rows({"night": 0.5, "home": 0.9, "fog": 0.1}, "own")
    lines = commands_to_repeat(adapted(parent, rows, folder="n", **own))
    assert lines == [
        "onedomain adapt RUN --target night=DIR --shots 7 --method fine-tune --seed 0 --test DIR --source DIR "
        "--threads 1 --out n-again",
        "onedomain evaluate n-again --on fog=DIR",
    ]
    left_over = [{**row, "split": "not drawn"} for row in made_rows({"night": 0.5}, "own")]
    assert "--test" not in commands_to_repeat(adapted(parent, left_over, **own))[0]
    assert "RUN stands for the run" in what_words_stand_for(adapted(parent, rows, **own))
