"""Make screenshots of the quickstart's report.

They are docs/report-1280.png, report-1280-dark.png and report-400.png. Run ``python
docs/make_screenshots.py audit/quickstart/report.html`` after ``auditor run
scenarios/quickstart.yaml``. Needs Chromium on the path and the packages ``playwright`` and
``pillow``.
"""

from __future__ import annotations

import shutil
import sys
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

DOCS = Path(__file__).resolve().parent
SHOTS = (
    ("report-1280", 1280, "light"),
    ("report-1280-dark", 1280, "dark"),
    ("report-400", 400, "light"),
)
"""Name, width in pixels, colour scheme."""


def main() -> None:
    """Photograph the page named on the command line."""
    page = Path(sys.argv[1]).resolve().as_uri()
    with sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        for name, width, scheme in SHOTS:
            content = _shot(browser, page, width, scheme)
            picture = Image.open(BytesIO(content)).convert("RGB")
            picture.save(DOCS / f"{name}.png", optimize=True)
        browser.close()


def _shot(browser: Browser, page: str, width: int, scheme: str) -> bytes:
    view = browser.new_page(
        viewport={"width": width, "height": 800},
        color_scheme="dark" if scheme == "dark" else "light",
    )
    view.goto(page)
    view.locator("html[data-charts=drawn]").wait_for(state="attached")
    content: bytes = view.screenshot()
    view.close()
    return content


if __name__ == "__main__":
    main()
