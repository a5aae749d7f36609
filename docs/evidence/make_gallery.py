"""Make docs/evidence/gallery.md and its pictures: each figure of the papers, what the paper claims of it, and what was measured.

Run ``python docs/evidence/make_gallery.py`` from the checkout. ``--results DIR`` names a folder of
existing results to reuse. Scenarios without results there are run, about ten minutes for all of
them.
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
from auditor.text.durations import duration
from auditor_reports.figures.figures import clean
from auditor_reports.figures.reading import Reading
from auditor_reports.layout.audit import audit_document
from auditor_reports.layout.document import Matrix
from auditor_reports.markdown import WRITERS, safe
from auditor_reports.wording.card import Verdict
from auditor_reports.wording.verdict import verdicts
from auditor_reports.wording.words import STATUS_MARKS, counts, where_text

DOCS = Path(__file__).resolve().parent
SCALE = 1.25
"""Pixels of a picture for each of the chart: sharp enough, and small."""
COLOURS = 48
LISTED = 12
"""Expectations of one scenario that the page lists; the report has all."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Make the pictures and the page."""
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
        if old.name not in made:  # only now: what breaks on the way leaves the gallery as it was
            old.unlink()
    (DOCS / "gallery.md").write_text("\n".join([INTRODUCTION, *parts]), encoding="utf-8")


INTRODUCTION = """# Gallery

Every figure of the papers that shows data or results, and the survey's tables: the paper's claim, the picture, and what was measured here.
Points and lines are measured, bands and bars are 95 % intervals, thin dashed lines are theory. Each claim is an expectation of a
scenario, so `auditor run SCENARIO` proves it again or refutes it. This page is made by `python docs/evidence/make_gallery.py`.
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
    begin = f"## {entry.title}\n\n{entry.source}:\n\n{claims}\n{shown}"
    if result is None:
        return begin
    told = "".join(f"- **{safe(v.scheme)}**: {safe(_said(v))}\n" for v in verdicts(Reading(result)))
    kinds = (
        "".join(f"{WRITERS[Matrix](block)}\n" for block in _compared(result)) if entry.kinds else ""
    )
    took = duration(result.provenance.duration)
    return f"{begin}\nMeasured (`auditor run {entry.scenario}`, which took {took} on one core):\n\n{told}\n{kinds}{_expected(result)}"


def _compared(result: AuditResult) -> list[Matrix]:
    blocks = [one for held in audit_document(result, brief=True).sections for one in held.blocks]
    return [block for block in blocks if isinstance(block, Matrix)]


def _said(verdict: Verdict) -> str:
    return verdict.text


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


def _expected(result: AuditResult) -> str:
    rows = ""
    for record in result.expectations[:LISTED]:
        stated = safe(record.expectation + clean(where_text(record.where)))
        rows += (
            f"| {STATUS_MARKS[record.status]} {record.status} | {stated} | {safe(record.why)} |\n"
        )
    more = len(result.expectations) - LISTED
    rest = f"\n{more} more; in all {counts(result)}.\n" if more > 0 else ""
    return f"| | expectation | what was found |\n| --- | --- | --- |\n{rows}{rest}"


if __name__ == "__main__":
    main()
