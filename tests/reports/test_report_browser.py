"""The page in a real browser: charts draw, the console stays silent, mouse and keyboard work, 400 pixels suffice.

Needs Chromium on the path, the package ``playwright`` and, for accessibility, ``axe-core`` from npm
in ``node_modules`` (or ``AXE_CORE`` naming its ``axe.min.js``). No browser is downloaded and
nothing is requested from the network."""

from __future__ import annotations

import base64
import json
import os
import random
import shutil
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import auditor_reports.html
from auditor.results.advice import Advice
from auditor.results.comparison import compare_results
from auditor.results.model import AuditResult
from auditor_reports.html import Html

pytest.importorskip(
    "playwright.sync_api", reason="playwright is not installed: pip install playwright"
)
from playwright.sync_api import Browser, Error, Page, sync_playwright

CHROMIUM = next(
    (
        path
        for name in ("chromium", "chromium-browser", "google-chrome")
        if (path := shutil.which(name))
    ),
    None,
)
AXE = Path(
    os.environ.get("AXE_CORE", Path(__file__).parents[2] / "node_modules/axe-core/axe.min.js")
)
pytestmark = [
    pytest.mark.slow,
    # A browser is no Python package: a plain machine cannot install it. `.ci/run` does, and there
    # nothing here is skipped.
    pytest.mark.skipif(
        CHROMIUM is None, reason="no Chromium on the path: install Debian's package chromium"
    ),
]
# axe-core is a package of npm's, which a plain machine may not have; `.ci/run` installs it.
needs_axe = pytest.mark.skipif(
    not AXE.is_file(), reason="axe-core is missing: npm install --no-save axe-core"
)

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
]
CASES = ("quickstart", "swept", "hostile", "six")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as started:
        launched = started.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def files(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> dict[str, Path]:
    """The pages of all cases, written once."""
    folder, made = tmp_path_factory.mktemp("pages"), {}
    for case in CASES:
        made[case] = folder / f"{case}.html"
        made[case].write_text(Html().render([request.getfixturevalue(case)]), encoding="utf-8")
    return made


class Opened:
    """A page that was opened, with what it wrote to the console and what it asked the network for."""

    def __init__(self, browser: Browser, file: Path, **options: Any) -> None:
        self.context = browser.new_context(
            **({"viewport": {"width": 1280, "height": 900}} | options)
        )
        self.page: Page = self.context.new_page()
        self.page.set_default_timeout(15_000)
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(file.as_uri())

    def __enter__(self) -> Opened:
        self.page.locator("html[data-charts=drawn]").wait_for(state="attached")
        return self

    def unfold(self) -> Opened:
        """Open every section, and wait until its charts are drawn."""
        self.page.evaluate(
            "document.querySelectorAll('details.section').forEach((one) => { one.open = true; })"
        )
        left = self.page.locator("figure:not(.drawn)")
        while left.count():
            left.first.wait_for(state="detached")
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()


@pytest.fixture(scope="module")
def opened(browser: Browser, files: dict[str, Path]) -> Iterator[Opened]:
    """The page of the first case, opened once for several tests: each leaves it as it was, but for the order of the rows."""
    with Opened(browser, files["quickstart"]) as page:
        yield page.unfold()


@pytest.mark.parametrize(
    ("case", "theme", "width"),
    [*((case, "light", 400) for case in CASES), ("quickstart", "dark", 1280)],
)
def test_charts_draw_offline_without_a_word_on_the_console(
    browser: Browser, files: dict[str, Path], case: str, theme: Any, width: int
) -> None:
    """400 pixels need no sideways scroll, folded or not."""
    with Opened(
        browser,
        files[case],
        color_scheme=theme,
        offline=True,
        viewport={"width": width, "height": 900},
    ) as opened:
        assert opened.page.locator("figure.drawn").count() == 2  # others are folded
        height = opened.page.evaluate("document.documentElement.scrollHeight")
        assert width < 1280 or height <= 3 * 800
        assert opened.page.locator(".gate").bounding_box()["y"] < 200  # type: ignore[index]
        opened.unfold()
        views = opened.page.locator(".view svg")
        assert opened.said == []
        assert [url for url in opened.asked if not url.startswith(("file:", "data:"))] == []
        assert views.count() == opened.page.locator(".view").count() >= 4
        for index in range(views.count()):
            assert views.nth(index).locator("path").count() > 5
        assert opened.page.evaluate("document.documentElement.scrollWidth") == width
        beyond = opened.page.evaluate(
            """[...document.querySelectorAll("main *")].filter((one) =>
              one.getBoundingClientRect().right > innerWidth + 1 && !one.closest(".scroll, pre, [popover], svg")
            ).map((one) => one.tagName + "." + one.className)"""
        )
        assert beyond == []


@pytest.mark.parametrize("level", [0, 1, 9])
def test_the_page_inflates_whatever_was_deflated(browser: Browser, level: int) -> None:
    """Blocks of all three kinds: stored, with the fixed code (short texts), and with codes of their own."""
    draw = random.Random(12)
    texts = [
        b"",
        b"a",
        b"abc" * 3,
        bytes(range(256)) * 300,
        draw.randbytes(70_000),
        "גיל ושכר, \u202e".encode() * 9_000,
        b"a" * 100_000,
    ]
    page = browser.new_page()
    page.add_script_tag(
        content=(Path(auditor_reports.html.__file__).parent / "templates/inflate.js").read_text(
            encoding="utf-8"
        )
    )
    script = """([packed, size]) => { const bytes = Uint8Array.from(atob(packed), (one) => one.charCodeAt(0));
                return btoa(Array.from(inflated(bytes, size), (one) => String.fromCharCode(one)).join("")); }"""
    for text in texts:
        packer = zlib.compressobj(level, zlib.DEFLATED, -15)
        packed = base64.b64encode(packer.compress(text) + packer.flush()).decode()
        assert base64.b64decode(page.evaluate(script, [packed, len(text)])) == text
        if text:
            with pytest.raises(Error, match="packed text"):
                page.evaluate(
                    script,
                    [
                        base64.b64encode(
                            base64.b64decode(packed)[: -max(2, len(packed) // 3)]
                        ).decode(),
                        len(text),
                    ],
                )
    page.close()


def column(page: Page, index: int) -> list[float]:
    script = f"rows => rows.map(row => Number(row.cells[{index}].dataset.sort))"
    values: list[float] = page.locator("table.matrix tbody tr").evaluate_all(script)
    return [value for value in values if value == value]


def test_a_heading_sorts_by_mouse_and_keyboard_and_says_so(opened: Opened) -> None:
    button = opened.page.locator("table.matrix thead button").nth(1)
    header = opened.page.locator("table.matrix thead th").nth(1)
    for direction, sort in (
        ("ascending", button.click),
        ("descending", lambda: button.press("Enter")),
    ):
        sort()
        assert header.get_attribute("aria-sort") == direction
        assert column(opened.page, 1) == sorted(
            column(opened.page, 1), reverse=direction == "descending"
        )


def test_a_cell_opens_its_detail_by_keyboard_and_escape_returns(opened: Opened) -> None:
    opened.page.locator("table.matrix thead button").last.focus()
    opened.page.keyboard.press("Tab")
    opened.page.keyboard.press("Enter")
    assert opened.page.locator("[popover]:popover-open").count() == 1
    opened.page.keyboard.press("Escape")
    assert opened.page.locator("[popover]:popover-open").count() == 0
    assert opened.page.evaluate("document.activeElement.hasAttribute('popovertarget')")


def test_a_control_changes_the_chart_and_hovering_tells_the_value(opened: Opened) -> None:
    figure = opened.page.locator("#audit-1-collusion")
    before = figure.locator("svg").inner_html()
    control = figure.locator("select[name=adversary]")
    chosen = control.input_value()
    control.select_option("0")
    opened.page.wait_for_timeout(300)
    assert figure.locator("svg").inner_html() != before
    figure.locator("svg .mark-symbol.role-mark path").last.hover(force=True)
    tip = opened.page.locator("#vg-tooltip-element.visible")
    tip.wait_for()
    assert "measured" in tip.inner_text()
    control.select_option(chosen)


def test_the_axis_names_what_a_control_chose(browser: Browser, files: dict[str, Path]) -> None:
    with Opened(browser, files["swept"]) as opened:
        opened.unfold()
        titles = opened.page.locator("#audit-1-sweep-0 svg .role-axis-title text")
        assert "normalized_error (share of variance)" in titles.all_text_contents()
        opened.page.locator("#audit-1-sweep-0 select[name=figure]").select_option(
            label="distortion, all attributes"
        )
        opened.page.wait_for_timeout(500)
        assert "distortion (squared data units)" in titles.all_text_contents()
        assert opened.said == []


def test_pictures_are_exported_with_their_colours(opened: Opened, tmp_path: Path) -> None:
    for kind, start in (("svg", b"<svg"), ("png", b"\x89PNG")):
        with opened.page.expect_download() as download:
            opened.page.locator(f"#audit-1-collusion button[data-export={kind}]").click()
        saved = tmp_path / "saved"
        download.value.save_as(saved)
        assert download.value.suggested_filename == f"audit-1-collusion.{kind}"
        content = saved.read_bytes()
        assert content.startswith(start)
        assert b"var(" not in content
        assert len(content) > 5_000


def test_paper_shows_everything_but_controls(opened: Opened) -> None:
    opened.page.emulate_media(media="print", color_scheme="dark")
    assert not opened.page.locator(".controls").first.is_visible()
    assert opened.page.locator(".view svg").first.is_visible()
    first = opened.page.locator("header.top").first.inner_text()
    assert all(part in first for part in ("Five recipients", "2026-02-03", "auditor", "Next:"))
    dark = opened.page.evaluate(
        "getComputedStyle(document.documentElement).getPropertyValue('--ink').trim()"
    )
    assert dark == "#16191d"
    assert len(opened.page.pdf()) > 50_000
    opened.page.emulate_media(media="screen", color_scheme="light")


@needs_axe
@pytest.mark.parametrize(("case", "theme"), [("quickstart", "dark"), ("swept", "light")])
def test_axe_finds_nothing_findings(
    browser: Browser, files: dict[str, Path], case: str, theme: Any
) -> None:
    with Opened(browser, files[case], color_scheme=theme) as opened:
        assert findings(opened.page) == []
        assert findings(opened.unfold().page) == []
        opened.page.locator("td button[popovertarget]").first.click()
        assert findings(opened.page, ":popover-open") == []


@needs_axe
def test_axe_finds_nothing_in_a_comparison(
    browser: Browser, quickstart: AuditResult, tmp_path: Path
) -> None:
    half = [
        r._replace(value=r.value / 2) if r.scheme == "correlated" and r.value else r
        for r in quickstart.measurements
    ]
    changed = compare_results(quickstart, quickstart.model_copy(update={"measurements": half}))
    file = tmp_path / "compare.html"
    file.write_text(Html().render_comparison(changed), encoding="utf-8")
    with Opened(browser, file) as opened:
        assert opened.said == []
        assert findings(opened.page) == []


@needs_axe
@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 400)])
def test_axe_finds_nothing_in_an_advice(
    browser: Browser, advice: Advice, tmp_path: Path, theme: Any, width: int
) -> None:
    file = tmp_path / "advice.html"
    file.write_text(Html().render_advice(advice), encoding="utf-8")
    with Opened(
        browser, file, color_scheme=theme, viewport={"width": width, "height": 900}
    ) as opened:
        assert opened.said == []
        assert opened.page.evaluate("document.documentElement.scrollWidth") == width
        assert findings(opened.page) == []


def findings(page: Page, part: str = "body") -> list[str]:
    """Return axe's findings, with the elements that they are about.

    Charts are left out, as they are to a screen reader: each has a name, and a table of its values.
    """
    page.evaluate(f"window.axe || (() => {{ {AXE.read_text(encoding='utf-8')} }})()")
    context = {"include": [[part]], "exclude": [[".view"]]}
    found = page.evaluate("context => axe.run(context, {resultTypes: ['violations']})", context)[
        "violations"
    ]
    return [
        f"{one['id']}: {json.dumps([node['html'][:160] for node in one['nodes'][:3]])}"
        for one in found
    ]


def test_without_scripts_sections_open_and_figures_can_be_read(
    browser: Browser, files: dict[str, Path]
) -> None:
    with_nothing = browser.new_context(java_script_enabled=False)
    page = with_nothing.new_page()
    page.goto(files["quickstart"].as_uri())
    assert page.locator("noscript").first.inner_text().startswith("The chart needs JavaScript")
    page.locator("figure summary").first.click()
    assert page.locator("figure table tbody tr").first.is_visible()
    page.locator("details.section summary", has_text="Attacks by strength").click()
    page.locator("td button[popovertarget]").first.click()
    assert page.locator("[popover]:popover-open").count() == 1
    with_nothing.close()
