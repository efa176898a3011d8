from __future__ import annotations

import json

from onedomain.data.progress import progress, work_in_parts


def test_a_log_file_gets_few_plain_lines(clock, capsys):
    with progress("train erm", 100) as update:
        for done in range(1, 101):
            clock.now += 1.0
            update(done, {"loss": 0.5})
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 10
    assert lines[0] == "train erm  10/100  loss 0.5  1.0 steps/s  1:30 left"
    assert lines[-1].startswith("train erm  100/100")


def test_lines_are_neither_too_close_nor_too_far_apart(clock, capsys):
    with progress("quick", 100) as update:
        for done in range(1, 100):
            clock.now += 0.01
            update(done, {})
    assert capsys.readouterr().err == ""
    with progress("slow", 10_000) as update:
        for done in range(1, 8):
            clock.now += 10
            update(done, {})
    assert len(capsys.readouterr().err.splitlines()) == 2


def test_other_work_between_steps_is_shown_and_does_not_count_as_slow_steps(clock, capsys):
    with progress("train sdg", 20) as update:
        for done in range(1, 11):
            clock.now += 1.0
            update(done, {})
        for part in range(10):
            clock.now += 60.0
            update(10, {"error": 3.0}, note=f"domain 1 {part * 10}%")
        clock.now += 1.0
        for done in range(11, 21):
            clock.now += 1.0
            update(done, {})
    lines = capsys.readouterr().err.splitlines()
    assert "train sdg  10/20  error 3  domain 1 40%" in lines
    assert lines[-1] == "train sdg  20/20  1.0 steps/s  0:00 left"


def test_nothing_is_shown_when_nobody_wants_it(capsys):
    with progress("x", 1, shown=False) as update:
        update(1, {})
    assert capsys.readouterr().err == ""


def test_each_part_of_other_work_is_told_once(capsys):
    with work_in_parts("prepare usps") as tell:
        for fraction in (0.0, 0.5, 1.0):
            tell("download", fraction)
        tell("convert", 0.0)
    assert capsys.readouterr().err.splitlines() == ["prepare usps: download", "prepare usps: convert"]


def test_a_watching_program_gets_a_json_line_a_second(clock, capsys, monkeypatch):
    monkeypatch.setenv("ONEDOMAIN_PROGRESS", "json")
    with progress("train sdg", 40, start=10) as update:
        for done in range(11, 41):
            clock.now += 0.25
            update(done, {"loss": 0.5}, "domain 1 50%" if done == 14 else "")
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line["done"] for line in lines] == [11, 15, 19, 23, 27, 31, 35, 39, 40]
    assert lines[-1] == {"progress": "train sdg", "total": 40, "unit": "steps", "done": 40, "rate": 4.138, "note": ""}
