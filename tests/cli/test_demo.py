from __future__ import annotations

from onedomain.benchmarks import Benchmark


def test_demo_trains_once_and_shows_a_comparison(onedomain, tmp_path, monkeypatch):
    load = Benchmark.load_for_scoring

    def few(self, data):
        domains, missing = load(self, data)
        return {name: domain.subset(range(60)) for name, domain in domains.items()}, missing

    monkeypatch.setattr(Benchmark, "load_for_scoring", few)
    monkeypatch.setattr("onedomain.reporting.page.page.figures", lambda runs, benchmark: ({}, []))  # they take seconds
    code, out, error = onedomain("demo", "--out", tmp_path / "demo", "--steps", 2, "--threads", 1)
    assert code == 0
    assert "average unseen" in out
    page = tmp_path / "demo" / "report.html"
    assert f"The report is in {page}" in error
    assert page.read_text(encoding="utf-8").count('class="image-card"') > 10
    assert page.stat().st_size < 3_000_000
    again = onedomain("demo", "--out", tmp_path / "demo", "--steps", 2, "--threads", 1)
    assert again[0] == 0
    assert again[1] == out
    assert "is trained already" in again[2]
    assert "is trained already" not in error
