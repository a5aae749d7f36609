"""Write docs/evidence/gallery.md and its pictures: claims and outcomes.

Run ``python docs/evidence/make_gallery.py`` from the checkout. ``--results DIR`` names a folder of
results to reuse. Other scenarios are run: about four processor minutes.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

from gallery_drawings import DRAWINGS, drawing
from gallery_entries import ENTRIES, Entry, Picture
from PIL import Image

import auditor
from auditor.results.model import AuditResult
from auditor_reports.figures import clean
from auditor_reports.pages import safe
from auditor_reports.sentences import counts, where_text

DOCS = Path(__file__).resolve().parent
SCALE = 1.25
"""Pixels of a picture for each of the chart: sharp enough, and small."""
COLOURS = 48


def main(arguments: Sequence[str] | None = None) -> None:
    """Draw the pictures and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--results", type=Path, help="folder of results to reuse")
    results = parser.parse_args(arguments).results
    folder = DOCS / "gallery"
    folder.mkdir(exist_ok=True)
    parts = [_part(entry, _result(entry.scenario, results)) for entry in ENTRIES]
    made = {
        picture.name(entry.scenario or picture.plot)
        for entry in ENTRIES
        for picture in entry.pictures
    }
    for old in folder.glob("*.png"):
        if old.name not in made:  # last, so that a failure leaves the gallery unchanged
            old.unlink()
    (DOCS / "gallery.md").write_text("\n".join([INTRODUCTION, *parts]), encoding="utf-8")


INTRODUCTION = """# Gallery

Figures of the papers: the claim, the report's chart, and the outcome of the scenario's expectations. Points and lines are measured, bands
and bars are 95 % intervals, thin dashed lines are theory. `auditor run SCENARIO` measures a figure again.
Written by `python docs/evidence/make_gallery.py`.
"""


def _result(scenario: str, folder: Path | None) -> AuditResult | None:
    if not scenario:
        return None
    print(scenario, file=sys.stderr)  # noqa: T201 - a script that may run for minutes says where it is
    if folder is not None and (folder / scenario / "results.json").is_file():
        return AuditResult.load(folder / scenario)
    return auditor.run(f"{scenario}.yaml")


def _part(entry: Entry, result: AuditResult | None) -> str:
    shown = "\n".join(_picture(entry, picture, result) for picture in entry.pictures)
    claims = "".join(f"- {claim}\n" for claim in entry.claims)
    begin = f"## {entry.title}\n\n{claims}\n{shown}"
    if result is None:
        return begin
    missed = [one for one in result.expectations if one.status != "holds"]
    open_ = "".join(
        f"- {one.status}: {safe(one.expectation + clean(where_text(one.where)))}; {safe(one.why)}\n"
        for one in missed
    )
    return f"{begin}\n`auditor run {entry.scenario}`: {counts(result)}.\n{open_}"


def _picture(entry: Entry, picture: Picture, result: AuditResult | None) -> str:
    name = picture.name(entry.scenario or picture.plot)
    if picture.plot in DRAWINGS:
        chart = drawing(picture.plot, result)
    else:
        assert result is not None
        chart = getattr(result.plot, picture.plot)(**dict(picture.choices))
    content = BytesIO()
    chart.properties(title=picture.caption).save(content, format="png", scale_factor=SCALE)
    small = Image.open(content).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    small.save(DOCS / "gallery" / name, optimize=True)
    return f"![{picture.caption}](gallery/{name})\n"


if __name__ == "__main__":
    main()
