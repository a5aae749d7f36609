"""The page in a real browser."""

import base64
import json
import os
import random
import shutil
import zlib
from pathlib import Path

import pytest

import auditor_reports.pages
from auditor_reports.pages import Html

pytest.importorskip(
    "playwright.sync_api", reason="playwright is not installed: pip install playwright"
)
from playwright.sync_api import Error, sync_playwright

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
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the path: install Debian's package chromium"),
]  # fmt: skip
# axe-core is a package of npm's, which a plain machine may not have; `.ci/run` installs it.
needs_axe = pytest.mark.skipif(
    not AXE.is_file(), reason="axe-core is missing: npm install --no-save axe-core"
)

FLAGS = [
    *("--no-sandbox --disable-gpu --disable-quic --disable-background-networking " "--disable-component-update").split(),
]  # fmt: skip
CASES = ("quickstart", "swept", "hostile")


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as started:
        launched = started.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def files(tmp_path_factory, request):
    """The pages of all cases, written once."""
    folder, made = tmp_path_factory.mktemp("pages"), {}
    for case in CASES:
        made[case] = folder / f"{case}.html"
        made[case].write_text(Html().render([request.getfixturevalue(case)]), encoding="utf-8")
    return made


class Opened:
    def __init__(self, browser, file, **options):
        self.context = browser.new_context(
            **({"viewport": {"width": 1280, "height": 900}} | options)
        )
        self.page = self.context.new_page()
        self.page.set_default_timeout(15_000)
        self.said = []
        self.asked = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(file.as_uri())

    def __enter__(self):
        self.page.locator("html[data-charts=drawn]").wait_for(state="attached")
        return self

    def unfold(self):
        """Open every section, and wait until its charts are drawn."""
        self.page.evaluate(
            "document.querySelectorAll('details.section').forEach((one) => { one.open = true; })"
        )
        left = self.page.locator("figure:not(.drawn)")
        while left.count():
            left.first.wait_for(state="detached")
        return self

    def __exit__(self, *_):
        self.context.close()


@pytest.fixture(scope="module")
def opened(browser, files):
    with Opened(browser, files["quickstart"]) as page:
        yield page.unfold()


@pytest.mark.parametrize(
    ("case", "theme", "width"),
    [*((case, "light", 400) for case in CASES), ("quickstart", "dark", 1280)],
)
def test_charts_draw_offline_without_a_word_on_the_console(browser, files, case, theme, width):
    """400 pixels need no sideways scroll, folded or not."""
    with Opened(
        browser, files[case], color_scheme=theme, offline=True,
        viewport={"width": width, "height": 900},
    ) as opened:  # fmt: skip
        assert opened.page.locator("figure.drawn").count() == 2  # others are folded
        height = opened.page.evaluate("document.documentElement.scrollHeight")
        assert width < 1280 or height <= 3 * 800
        assert opened.page.locator(".gate").bounding_box()["y"] < 200  # type: ignore[index]
        goals = opened.page.locator(".goal").all()
        assert all(goal.bounding_box()["height"] < 44 for goal in goals)  # two lines
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


@pytest.mark.parametrize("level", [0, 9])
def test_the_page_inflates_whatever_was_deflated(browser, level):
    draw = random.Random(12)
    texts = [
        b"", b"a", b"abc" * 3, bytes(range(256)) * 300, draw.randbytes(70_000),
        "גיל ושכר, \u202e".encode() * 9_000, b"a" * 100_000,
    ]  # fmt: skip
    page = browser.new_page()
    page.add_script_tag(
        content=(Path(auditor_reports.pages.__file__).parent / "templates/inflate.js").read_text(
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
                page.evaluate(script, [
                    base64.b64encode(base64.b64decode(packed)[: -max(2, len(packed) // 3)]).decode(),
                    len(text),
                ])  # fmt: skip
    page.close()


def test_a_cell_opens_its_detail_by_keyboard_and_escape_returns(opened):
    opened.page.locator("table.matrix thead button").last.focus()
    opened.page.keyboard.press("Tab")
    opened.page.keyboard.press("Enter")
    assert opened.page.locator("[popover]:popover-open").count() == 1
    opened.page.keyboard.press("Escape")
    assert opened.page.locator("[popover]:popover-open").count() == 0
    assert opened.page.evaluate("document.activeElement.hasAttribute('popovertarget')")


def test_paper_shows_everything_but_controls(opened):
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
def test_axe_finds_nothing_findings(browser, files, case, theme):
    with Opened(browser, files[case], color_scheme=theme) as opened:
        assert findings(opened.page) == []
        assert findings(opened.unfold().page) == []
        opened.page.locator("td button[popovertarget]").first.click()
        assert findings(opened.page, ":popover-open") == []


def findings(page, part="body"):
    """Return axe's findings, with the elements that they are about."""
    page.evaluate(f"window.axe || (() => {{ {AXE.read_text(encoding='utf-8')} }})()")
    context = {"include": [[part]], "exclude": [[".view"]]}
    found = page.evaluate("context => axe.run(context, {resultTypes: ['violations']})", context)[
        "violations"
    ]
    return [
        f"{one['id']}: {json.dumps([node['html'][:160] for node in one['nodes'][:3]])}"
        for one in found
    ]


def test_without_scripts_sections_open_and_figures_can_be_read(browser, files):
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
