"""The page in a real browser: charts draw, the console stays silent, 400 pixels suffice."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from auditor.results import AuditResult
from reports.html import Html

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        CHROMIUM is None, reason="no Chromium on the path; install Debian's chromium to run the browser tests"
    ),
]

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
    "--enable-logging=stderr", "--virtual-time-budget=15000",
)  # fmt: skip
CASES = ("quickstart", "swept", "hostile")


def opened(page: Path, folder: Path, *flags: str) -> tuple[str, list[str]]:
    """Return the document after its scripts ran, and what they wrote to the console."""
    command = [str(CHROMIUM), *FLAGS, f"--user-data-dir={folder / 'profile'}", *flags, "--dump-dom", page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout, [line for line in done.stderr.splitlines() if ":CONSOLE" in line]


def written(result: AuditResult, folder: Path, probe: str = "") -> Path:
    """Write the page; a probe is a script that runs in it, for which the policy is taken out."""
    text = Html().render([result])
    if probe:
        text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
        text += f"<script>{probe}</script>"
    page = folder / "report.html"
    page.write_text(text, encoding="utf-8")
    return page


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("theme", ["0", "1"], ids=["dark", "light"])
def test_charts_draw_under_the_policy_without_a_word_on_the_console(
    case: str, theme: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    page = written(request.getfixturevalue(case), tmp_path)
    document, console = opened(page, tmp_path, f"--blink-settings=preferredColorScheme={theme}")
    assert console == []
    assert 'data-charts="drawn"' in document
    assert document.count('class="marks"') == (5 if case == "swept" else 4)


def measured(result: AuditResult, folder: Path, probe: str, *flags: str) -> str:
    """Return what a probe wrote into the title once the charts were drawn."""
    waiting = f"""
      const wait = setInterval(async () => {{
        if (!document.documentElement.dataset.charts) return;
        clearInterval(wait);
        document.title = await (async () => {{ {probe} }})();
      }}, 50);"""
    document, console = opened(written(result, folder, waiting), folder, *flags)
    assert console == []
    found = re.search(r"<title>(.*?)</title>", document, re.DOTALL)
    assert found is not None
    return found.group(1)


@pytest.mark.parametrize("case", CASES)
def test_four_hundred_pixels_need_no_sideways_scroll(case: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """In a frame, because a browser window has a least width of its own."""
    probe = """
      const wait = setInterval(() => {
        if (!document.documentElement.dataset.charts) return;
        clearInterval(wait);
        const beyond = [...document.querySelectorAll("main *")].filter((one) =>
          one.getBoundingClientRect().right > innerWidth + 1 && !one.closest(".scroll, pre, [popover], svg"));
        const names = beyond.slice(0, 5).map((one) => one.tagName + "." + one.className);
        parent.postMessage(`${innerWidth} ${document.documentElement.scrollWidth} ${names.join(" ")}`, "*");
      }, 50);"""
    page = written(request.getfixturevalue(case), tmp_path, probe)
    frame = tmp_path / "frame.html"
    frame.write_text(
        "<script>addEventListener('message', (event) => { document.title = event.data; });</script>"
        f"<iframe src='{page.name}' width='400' height='900' style='border: 0'></iframe>"
    )
    document, console = opened(frame, tmp_path)
    assert console == []
    assert "<title>400 400 </title>" in document


def test_a_heading_sorts_and_says_so(quickstart: AuditResult, tmp_path: Path) -> None:
    probe = """
      const button = document.querySelectorAll("table.matrix thead button")[1];
      button.focus(); button.click(); button.click();
      const values = [...document.querySelectorAll("table.matrix tbody tr")].map((row) => row.cells[1].dataset.sort);
      return JSON.stringify([button.closest("th").getAttribute("aria-sort"), values]);"""
    found = measured(quickstart, tmp_path, probe)
    values = [float(text) for text in re.findall(r"0\.\d+", found)]
    assert "descending" in found
    assert len(values) == 4
    assert values == sorted(values, reverse=True)


def test_a_cell_opens_its_detail_and_a_control_changes_the_chart(quickstart: AuditResult, tmp_path: Path) -> None:
    probe = """
      const cell = document.querySelector("td button[popovertarget]"); cell.focus(); cell.click();
      const open = document.querySelectorAll(":popover-open").length;
      const figure = document.getElementById("audit-1-collusion"), before = figure.querySelector("svg").outerHTML;
      const select = figure.querySelector("select[name=adversary]"); select.selectedIndex = 0;
      select.dispatchEvent(new Event("change")); await new Promise((go) => setTimeout(go, 500));
      return `${open} ${before !== figure.querySelector("svg").outerHTML}`;"""
    assert measured(quickstart, tmp_path, probe) == "1 true"


def test_pictures_are_exported_with_their_colours(quickstart: AuditResult, tmp_path: Path) -> None:
    probe = """
      const saved = []; HTMLAnchorElement.prototype.click = function () { saved.push([this.download, this.href]); };
      const buttons = document.querySelectorAll("#audit-1-collusion button[data-export]");
      buttons.forEach((button) => button.click()); await new Promise((go) => setTimeout(go, 1500));
      const told = ([name, url]) => `${name} ${url.slice(0, 14)} ${decodeURIComponent(url).includes("var(")}`;
      return saved.map(told).join("; ");"""
    assert measured(quickstart, tmp_path, probe) == (
        "audit-1-collusion.svg data:image/svg false; audit-1-collusion.png data:image/png false"
    )
