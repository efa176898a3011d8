from __future__ import annotations

import hashlib
import os
import re
from base64 import b64encode
from html.parser import HTMLParser
from pathlib import Path

import pytest

from onedomain.errors import UserError
from onedomain.reporting.page.page import render, write_report
from onedomain.runs.records import read_runs
from tests.reporting.page.made import made_outcome, made_rows, made_run, write_run

NASTY = "<script>alert('x')</script> & \"quoted\" 🌙"
VOID = {"meta", "link", "img", "br", "path", "polygon", "circle"}


class Document(HTMLParser):
    """The elements with their attributes and texts; refuses tags that do not close in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), (tag, attrs)
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, (tag, self.open[-3:], self.getpos())

    def handle_data(self, data):
        if data.strip():
            self.texts.append(" ".join(data.split()))

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]

    def attributes(self, name):
        return [attributes[name] for _, attributes in self.elements if name in attributes]


@pytest.fixture(autouse=True)
def _no_figures(monkeypatch):
    """They take seconds, and have a test of their own."""
    monkeypatch.setattr("onedomain.reporting.page.page.figures", lambda runs, benchmark: ({}, []))


@pytest.fixture
def two_runs(tmp_path):
    """ERM and SDG on two unseen domains, with answers on one."""
    accuracies, flagged = {"home": 0.9, "near": 0.6, "far": 0.25}, {"home": 0.05, "near": 0.3, "far": 0.8}
    folders = []
    for method in ("erm", "sdg"):
        rows = made_rows(accuracies, flagged=flagged)
        outcome = made_outcome("far", [0, 1, 0, 1], [0, 1, 2, 0], [0.1, 0.9, 0.9, 0.1])
        folders.append(write_run(tmp_path / "runs" / method, made_run({}, method, rows=rows), [outcome]))
    return folders


def test_the_page_holds_everything_and_loads_nothing(two_runs):
    page = render(read_runs(two_runs))
    document = Document(page)
    for attribute in ("src", "href", "srcset", "action", "data"):
        for address in document.attributes(attribute):
            assert address.startswith(("data:", "#")), address
    for scheme in ("http:", "https:", "@import", "url("):
        assert scheme not in page.replace("http-equiv", "")
    [script] = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    allowed = next(meta["content"] for meta in document.all("meta") if "http-equiv" in meta)
    assert "default-src 'none'" in allowed
    assert f"script-src 'sha256-{b64encode(hashlib.sha256(script.encode()).digest()).decode()}'" in allowed


def test_the_page_can_be_read_by_machines_that_read_aloud(two_runs):
    document = Document(render(read_runs(two_runs)))
    identities = document.attributes("id")
    assert len(identities) == len(set(identities))
    assert document.all("html") == [{"lang": "en"}]
    assert len(document.all("main")) == len(document.all("h1")) == 1
    assert all("scope" in head for head in document.all("th"))
    assert len(document.all("caption")) == len(document.all("table"))
    assert all(image["alt"] for image in document.all("img"))
    assert all("aria-label" in picture for picture in document.all("svg"))
    for attribute in ("aria-labelledby", "for"):
        assert set(document.attributes(attribute)) <= set(identities)
    assert {address[1:] for address in document.attributes("href") if address.startswith("#")} <= set(identities)
    levels = [int(tag[1]) for tag, _ in document.elements if re.fullmatch("h[1-6]", tag)]
    assert all(after <= before + 1 for before, after in zip([0, *levels], levels, strict=False))


def test_the_page_says_what_the_records_say(two_runs):
    texts = Document(render(read_runs(two_runs))).texts
    joined = " ".join(texts)
    assert "Nothing beats plain training on 2 unseen domains: ERM 42.5%, SDG 42.5% on average" in joined
    assert "it gets 40% wrong and flags 30% as out of domain (5% of new home images)" in joined
    assert {"42.5", "60.0", "25.0", "90.0", "56.9–63.0"} <= set(texts)  # Wilson's interval of 60% of 1,000 images
    assert {"is", "nought", "one", "two"} <= set(texts)
    assert any(text.startswith("onedomain train --benchmark bench --method sdg --seed 0") for text in texts)
    assert "1.5" in texts  # minutes
    assert "fingerprint source-print" in joined


def test_names_are_shown_as_they_are_and_never_run(tmp_path):
    rows = made_rows({"home": 0.9, NASTY: 0.5}, flagged={"home": 0.1, NASTY: 0.4}, count=4, note=NASTY, data="same")
    outcome = made_outcome(
        NASTY, [0, 1, 0, 1], [0, 1, 2, 0], [0, 1, 0, 1], classes=(NASTY, "b'\"", "<b>"), fingerprint="same"
    )
    run = made_run({}, NASTY, rows=rows, own=NASTY, name=NASTY + "\x1b[2J", classes=(NASTY, "b'\"", "<b>"), trick=NASTY)
    folder = write_run(tmp_path / "runs<img src=x onerror=alert(1)>&\"'🌙", run, [outcome])
    page = render(read_runs([folder]))
    document = Document(page)
    assert len(document.all("script")) == 1
    assert len(document.all("b")) == len(re.findall(r"<b>", page))
    assert not any("onerror" in attributes for _, attributes in document.elements)
    assert all(image["src"].startswith("data:image/") for image in document.all("img"))
    assert f"image of {NASTY}" in " ".join(image["alt"] for image in document.all("img"))
    joined = " ".join(document.texts)
    assert NASTY in joined
    assert "\x1b" not in page
    assert "runs<img src=x onerror=alert(1)>&\"'🌙" in joined


def test_every_benchmark_is_a_section_of_its_own(tmp_path):
    rows = [*made_rows({"a": 0.5}, "bench"), *made_rows({"b": 0.5}, "own"), *made_rows({"c": 0.5}, "digits-lite")]
    folder = write_run(tmp_path / "a", made_run({}, rows=rows))
    other = write_run(tmp_path / "b", made_run({}, "sdg", rows=made_rows({"a": 0.7}, "bench")))
    document = Document(render(read_runs([folder, other])))
    parts = [each for each in document.all("section") if each.get("class") == "benchmark"]
    assert [part["id"] for part in parts] == ["part-1", "part-2", "part-3"]
    assert {"bench", "your own domains", "digits-lite"} <= set(document.texts)
    assert len(document.all("h1")) == 1
    assert any("SDG holds up best on a" in text for text in document.texts)


def test_what_was_not_kept_or_measured_is_said_with_what_to_do(tmp_path):
    folder = write_run(tmp_path / "a", made_run({"a": 0.5}))
    joined = " ".join(Document(render(read_runs([folder]))).texts)
    assert f"Score the runs again to keep them: onedomain evaluate {folder} --benchmark bench" in joined
    assert "These runs carry no calibration" in joined


def test_a_run_that_only_python_can_repeat_says_so(tmp_path):
    folder = write_run(tmp_path / "a", made_run({"a": 0.5}, own="MyNet"))
    joined = " ".join(Document(render(read_runs([folder]))).texts)
    assert "Trained from Python with MyNet" in joined
    assert "onedomain train" not in joined


def test_the_report_is_written_whole_into_a_new_folder_or_over_an_old_one(two_runs, tmp_path):
    out = write_report(two_runs, tmp_path / "new" / "deep" / "report.html")
    assert Document(out.read_text(encoding="utf-8"))
    out.write_text("<!doctype html>old")
    write_report(two_runs, out)
    assert len(out.read_text(encoding="utf-8")) > 1000
    assert [path.name for path in out.parent.iterdir()] == ["report.html"]


def test_nothing_of_the_users_is_overwritten(two_runs, tmp_path):
    with pytest.raises(UserError, match="--out: .*runs is a folder; allowed: a file, such as .*report.html"):
        write_report(two_runs, tmp_path / "runs")
    mine = tmp_path / "thesis.tex"
    mine.write_text("years of work")
    with pytest.raises(UserError, match="thesis.tex is there and is no web page"):
        write_report(two_runs, mine)
    assert mine.read_text() == "years of work"
    with pytest.raises(UserError, match="cannot be written"):
        write_report(two_runs, mine / "report.html")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_is_not_ours_to_write_is_told(two_runs, tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    with pytest.raises(UserError, match="cannot be written"):
        write_report(two_runs, closed / "report.html")


@pytest.mark.parametrize("content", [b"", b"garbage", "half"])
def test_a_broken_file_of_answers_is_named_and_an_old_report_kept(two_runs, tmp_path, content):
    out = tmp_path / "report.html"
    write_report(two_runs, out)
    before = out.read_bytes()
    [broken] = Path(two_runs[1]).glob("outcomes/bench/*.safetensors")
    broken.write_bytes(broken.read_bytes()[:-40] if content == "half" else content)
    with pytest.raises(UserError, match=f"{broken.name}: "):
        write_report(two_runs, out)
    assert out.read_bytes() == before


def test_a_broken_calibration_is_named(two_runs, tmp_path):
    (two_runs[0] / "calibration.safetensors").write_bytes(b"x")
    with pytest.raises(UserError, match="calibration.safetensors: has no threshold"):
        write_report(two_runs, tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()
