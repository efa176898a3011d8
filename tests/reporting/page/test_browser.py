"""The report in a real browser, as a person meets it."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import onedomain as od
from onedomain.data.corruptions import KINDS, SEVERITIES
from onedomain.reporting.page.page import render, write_report
from tests.conftest import make_tiny
from tests.reporting.page.chromium import INSTALL, Chromium, Page, find_chromium, install_chromium
from tests.reporting.page.made import made_rows, made_run

DESKTOP, PHONE = (1280, 800), (360, 740)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Of small runs: two methods, one of them with two seeds, scored on domains whose names are a nuisance."""
    folder = tmp_path_factory.mktemp("report")
    source, home = enlarged(make_tiny()), enlarged(make_tiny(seed=1))
    dark = replace(home, images=home.images // 3)
    domains = {"home": home, "<b>night</b> & fog": dark, "an-unusually-long-name" * 3: inverted(home)}
    runs = []
    for kind, seed in ((od.ERM, 0), (od.ERM, 1), (od.AugMix, 0)):
        method, out = kind(steps=5, learning_rate=1e-3), folder / f"{kind.__name__}-{seed}"
        run = od.fit(method, source, network="lenet", seed=seed, out=out, held_out=home, progress=False)
        run.write_records(run.evaluate(domains, seen=["home"]))
        runs.append(out)
    return write_report(runs, folder / "report.html")


def enlarged(domain):
    """As large as the library's network needs, in colour."""
    return replace(domain, images=np.repeat(domain.images.repeat(4, 1).repeat(4, 2), 3, 3))


def inverted(domain):
    return replace(domain, images=255 - domain.images)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    program = find_chromium() or (install_chromium() if os.environ.get("CI") else None)
    if program is None:
        pytest.skip(f"no Chromium: install it, on Debian by: {INSTALL}")
    opened = Chromium(program, tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()


@pytest.fixture
def page(browser, report, request):
    """The report on a desktop, or as the test's parameter says."""
    opened = Page(browser, *DESKTOP, **getattr(request, "param", {}))
    opened.open(report)
    yield opened
    opened.close()


def first_column(page):
    return page.run("[...document.querySelectorAll('table.accuracy tbody th')].map(head => head.dataset.value)")


def sorting(page):
    return page.run("[...document.querySelectorAll('table.accuracy thead th')].map(head => head.ariaSort)")


def values(page, column):
    return page.run(
        "[...document.querySelectorAll('table.accuracy tbody tr')]"
        f".map(row => Number(row.cells[{column}].dataset.value))"
    )


def test_no_complaint_and_no_request_but_for_the_file_itself(page, report):
    page.run("document.querySelectorAll('details').forEach(details => { details.open = true; })")
    page.wait_for("[...document.images].every(image => image.complete && image.naturalWidth > 0)")
    assert page.complaints() == []
    assert [address for address in page.addresses() if not address.startswith("data:")] == [report.resolve().as_uri()]


def test_the_page_may_not_reach_the_network_even_if_something_in_it_tried(page):
    refused = page.run(
        "new Promise(resolve => { addEventListener('securitypolicyviolation', event => resolve(event.blockedURI));"
        " const image = new Image(); image.src = 'http://127.0.0.1:9/x.png'; document.body.append(image); })"
    )
    assert refused == "http://127.0.0.1:9/x.png"


def test_a_click_on_a_header_sorts_and_says_so(page):
    assert sorting(page)[:2] == ["none", "descending"]
    assert values(page, 1) == sorted(values(page, 1), reverse=True)
    page.click("table.accuracy thead th:nth-child(2) button")
    assert sorting(page)[:2] == ["none", "ascending"]
    assert values(page, 1) == sorted(values(page, 1))
    page.click("table.accuracy thead th:nth-child(1) button")
    assert sorting(page)[:2] == ["ascending", "none"]
    assert first_column(page) == sorted(first_column(page))
    page.click("table.accuracy thead th:nth-child(4) button")
    assert sorting(page)[3] == "descending"
    assert values(page, 3) == sorted(values(page, 3), reverse=True)


def test_the_keyboard_reaches_a_header_and_sorts(page):
    page.press("Tab")
    assert page.run("document.activeElement.className") == "skip"
    for _ in range(30):
        page.press("Tab")
        if page.run("document.activeElement.matches('table.accuracy th:nth-child(1) button.sort')"):
            break
    assert page.run("document.activeElement.textContent") == "method"
    assert page.run("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    for order in ("ascending", "descending"):
        page.press("Enter", "\r")
        assert sorting(page)[0] == order
        assert first_column(page) == sorted(first_column(page), reverse=order == "descending")


def test_images_are_filtered_by_what_was_answered(page):
    everything = page.run("document.querySelectorAll('.image-card').length")
    page.run(
        "const select = document.querySelector('.cards-filter'); select.value = 'wrong';"
        " select.dispatchEvent(new Event('change'))"
    )
    shown = page.run("[...document.querySelectorAll('.image-card')].filter(card => card.checkVisibility()).length")
    assert 0 < shown < everything
    assert shown == page.run("document.querySelectorAll('.image-card:has(.wrong)').length")
    assert page.run("document.querySelector('.filter-count').textContent") == f"{shown} of {everything}"


def test_a_command_is_copied_or_at_least_marked(page):
    page.run("document.querySelector('details.run').open = true")
    page.click("details.run .copy")
    page.wait_for("document.querySelector('details.run .copy').textContent !== 'Copy'")


@pytest.mark.parametrize("page", [{"dark": True}, {"dark": False}], indirect=True, ids=["dark", "light"])
def test_text_stands_out_from_its_background(page, request):
    """WCAG's contrast of 4.5 for every text colour on the page and on cards, in both schemes."""
    dark = request.node.callspec.id == "dark"
    assert page.run("matchMedia('(prefers-color-scheme: dark)').matches") == dark
    colours = {
        name: page.run(f"getComputedStyle(document.documentElement).getPropertyValue('--{name}').trim()")
        for name in ("page", "card", "ink", "soft", "accent", "best", "warn", "heat")
    }
    for text in ("ink", "soft", "accent", "best", "warn"):
        for behind in ("page", "card"):
            assert contrast(colours[text], colours[behind]) >= 4.5, (text, behind)
    assert contrast(colours["ink"], colours["heat"]) >= 4.5


def contrast(one: str, other: str) -> float:
    """Of two colours such as #fff or #1b1d22, by WCAG."""
    lights = []
    for colour in (one, other):
        digits = colour.removeprefix("#")
        digits = "".join(2 * digit for digit in digits) if len(digits) == 3 else digits
        parts = [int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        lights.append(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2])
    return (max(lights) + 0.05) / (min(lights) + 0.05)


@pytest.mark.parametrize(("size", "phone"), [(DESKTOP, False), (PHONE, True)], ids=["desktop", "phone"])
def test_it_fits_the_screen_and_begins_with_the_answer(browser, report, tmp_path, size, phone):
    page = Page(browser, *size, phone=phone)
    try:
        page.open(report)
        page.run("document.querySelectorAll('details').forEach(details => { details.open = true; })")
        width, room = page.run("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
        assert width <= room == size[0]
        # The headline and the first rows of the table are in sight without scrolling.
        for selector in (".headline", "table.accuracy tbody tr"):
            bottom = page.run(f"document.querySelector('{selector}').getBoundingClientRect().bottom")
            assert 0 < bottom <= size[1], selector
        # A wide table scrolls inside its frame, and its first column stays in sight.
        scrolled = page.run(
            "(() => { const frame = document.querySelector('.by-domain .scroll'); frame.scrollLeft = 9999;"
            " const head = frame.querySelector('tbody th');"
            " return [frame.scrollLeft, head.getBoundingClientRect().left - frame.getBoundingClientRect().left]; })()"
        )
        assert scrolled[0] > 0 if phone else scrolled[0] >= 0
        assert abs(scrolled[1]) < 2
        folder = Path(os.environ.get("ONEDOMAIN_SCREENSHOTS", tmp_path))
        file = folder / f"report-{'phone' if phone else 'desktop'}.png"
        page.screenshot(file)
        image = Image.open(file)
        assert image.size == tuple(side * (2 if phone else 1) for side in size)
        assert len(image.convert("L").getcolors()) > 20  # something is on it
    finally:
        page.close()


def test_it_prints_in_light_colours_with_everything_unfolded(browser, report, tmp_path):
    page = Page(browser, *DESKTOP, dark=True)
    try:
        page.open(report)
        page.print(tmp_path / "report.pdf")
        assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")
        page.call("Emulation.setEmulatedMedia", media="print", features=[])
        assert page.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert page.run("getComputedStyle(document.querySelector('nav')).display") == "none"
        assert page.run("getComputedStyle(document.querySelector('.copy')).display") == "none"
    finally:
        page.close()


def test_without_scripts_the_page_is_complete(browser, report):
    page = Page(browser, *DESKTOP)
    try:
        page.call("Emulation.setScriptExecutionDisabled", value=True)
        page.call("Page.navigate", url=report.resolve().as_uri())
        page.wait_for("document.readyState === 'complete' && location.protocol === 'file:'")
        hidden = page.run("[...document.querySelectorAll('.copy, .filter')].every(each => !each.checkVisibility())")
        assert hidden  # what would do nothing is not offered
        assert page.run("document.querySelectorAll('table.accuracy tbody tr').length") == len(first_column(page)) > 1
        assert page.run("document.querySelector('.image-card').checkVisibility()")
    finally:
        page.close()


@pytest.mark.parametrize(("size", "phone"), [(DESKTOP, False), (PHONE, True)], ids=["desktop", "phone"])
def test_heat_maps_are_in_sight_whole_and_the_fuller_the_better(browser, tmp_path, size, phone):
    every = [f"{kind}-{level}" for kind in KINDS for level in SEVERITIES]
    scores = {"cifar10": 0.9, **{name: 0.9 - 0.15 * int(name[-1]) for name in every}}
    rows = made_rows(scores, "cifar10-c-lite", seen=("cifar10",))
    (tmp_path / "report.html").write_text(render([made_run(None, "erm", 0, "cifar10-c-lite", rows=rows)]))
    page = Page(browser, *size, phone=phone)
    try:
        page.open(tmp_path / "report.html")
        assert page.run("document.documentElement.scrollWidth") == size[0]
        assert page.run("(t => t.scrollWidth <= t.parentElement.clientWidth)(document.querySelector('table.heat'))")
        colours = page.run(
            "[...document.querySelectorAll('table.heat tbody tr:nth-child(2) td')].slice(0, 5)"
            ".map(cell => getComputedStyle(cell).backgroundColor)"
        )
        assert len(set(colours)) == 5
    finally:
        page.close()
