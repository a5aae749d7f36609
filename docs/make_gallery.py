"""Make docs/gallery.md and its pictures: each figure of the papers, what the paper claims of it, and what was measured.

Run ``python docs/make_gallery.py`` from the checkout. Results that are there already can be reused: ``--results DIR`` names a folder
that ``auditor run … --output DIR`` wrote; scenarios that it does not hold are run.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import auditor
from auditor.results import AuditResult
from reports._figures import clean
from reports._reading import Reading
from reports._verdict import verdicts
from reports._words import STATUS_MARKS, where_text
from reports.markdown import safe

DOCS = Path(__file__).resolve().parent
SCALE = 1.25
"""Pixels of a picture for each of the chart: sharp enough, and small."""


@dataclass(frozen=True)
class Picture:
    """One chart: the method of ``result.plot``, the choices made above it, and what it shows."""

    plot: str
    caption: str
    choices: tuple[tuple[str, str], ...] = ()

    def name(self, scenario: str) -> str:
        """Return the file's name, made of what was chosen."""
        told = "-".join([scenario, self.plot, *(value for _, value in self.choices)])
        return "".join(c if c.isalnum() or c == "-" else "-" for c in told).strip("-").replace("--", "-") + ".png"


@dataclass(frozen=True)
class Entry:
    """One figure of a paper, or one of its worked examples."""

    scenario: str
    title: str
    claims: tuple[str, ...]
    pictures: tuple[Picture, ...]


LI, HUANG = "Li, Chen, Li & Zhang (2012)", "Huang, Du & Chen (2005)"
RMSE = (("figure", "rmse, all attributes"),)

ENTRIES = (
    Entry(
        "li2012-example",
        f"{LI}, sections 4.2 and 4.3: Alice and Bob",
        (
            "Alone, Alice (σ² = 1) leaves 0.5 and Bob (σ² = 4) leaves 0.8 unknown.",
            "Together: 4/9 from independent noise, 0 from linearly dependent noise, 0.5 (Alice's own) from corner-wave noise.",
        ),
        (Picture("collusion", "One copy, and both pooled, under the three kinds of noise"),),
    ),
    Entry(
        "li2012-fig2",
        f"{LI}, Figure 2: error against the number of copies",
        (
            "Independent noise: pooling copies reduces the normalized estimation error dramatically.",
            "The proposed scheme: the curve of attacks with all copies overlaps that of the least perturbed copy.",
            "With moments estimated from few rows the error flattens and even slightly increases; more samples perform better.",
        ),
        (
            Picture("collusion", "Perfect knowledge, Age", (("attribute", "age"),)),
            Picture(
                "collusion",
                "Moments estimated from 400 rows without structure, Age: with more copies the error rises again",
                (("attribute", "age"), ("adversary", "llse, estimated(rows=400, structure=none) knowledge")),
            ),
        ),
    ),
    Entry(
        "li2012-fig3",
        f"{LI}, Figure 3: errors of single records",
        (
            "Independent noise: as M grows, the cumulative histograms approach the vertical axis.",
            "The proposed scheme: the cumulative histograms are almost identical for all M, and approach 1 much slower.",
        ),
        (
            Picture("errors", "5 copies pooled, Age", (("coalition", "{1–5}"),)),
            Picture("errors", "30 copies pooled, Age", (("coalition", "{1–30}"),)),
        ),
    ),
    Entry(
        "li2012-fig4-iris",
        f"{LI}, Figure 4: usefulness of the copies (Iris)",
        ("At all noise levels, the accuracies on data perturbed by either scheme are identical.",),
        (Picture("frontier", "Accuracy of a decision tree against what is left unknown", (("figure", "utility_decision_tree"),)),),
    ),
    Entry(
        "li2012-fig5",
        f"{LI}, Figure 5: time to make copies on demand",
        (
            "The runtime increases only about linearly in M, far below the bound of M³.",
            "The difference from the independent noise scheme is considerably small.",
        ),
        (Picture("runtime", "Seconds for the last M − L copies of 100,000 records, on the machine that made this page"),),
    ),
    Entry(
        "huang2005-exp1",
        f"{HUANG}, Figure 1: number of attributes",
        (
            "All correlation-based reconstructions have lower errors when the number of attributes increases.",
            "UDR is not sensitive to the change of correlations; BE-DR performs better than PCA-DR and SF.",
        ),
        (Picture("sweep", "Root mean squared error of each attack, perfect knowledge", (("figure", "rmse, all attributes"),)),),
    ),
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Make the pictures and the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--results", type=Path, help="folder of results to reuse")
    results = parser.parse_args(arguments).results
    parts = [_part(entry, _result(entry.scenario, results)) for entry in ENTRIES]
    (DOCS / "gallery.md").write_text("\n".join([INTRODUCTION, *parts]), encoding="utf-8")


INTRODUCTION = """# Gallery

Every figure of the papers that the shipped scenarios reproduce: the paper's claim, the picture, and what was measured here.
Points and lines are measured, bands and bars are 95 % intervals, thin dashed lines are theory. Each claim is an expectation of a
scenario, so `auditor run SCENARIO` proves it again or refutes it. This page is made by `python docs/make_gallery.py`.
"""


def _result(scenario: str, folder: Path | None) -> AuditResult:
    if folder is not None and (folder / scenario / "results.json").is_file():
        return AuditResult.load(folder / scenario)
    return auditor.run(f"{scenario}.yaml")


def _part(entry: Entry, result: AuditResult) -> str:
    shown = "\n".join(_picture(entry, picture, result) for picture in entry.pictures)
    claims = "".join(f"- {claim}\n" for claim in entry.claims)
    told = "".join(f"- **{safe(v.scheme)}**: {safe(v.sentence)}\n" for v in verdicts(Reading(result)))
    measured = f"Measured (`auditor run {entry.scenario}`):\n\n{told}\n{_expected(result)}"
    return f"## {entry.title}\n\nThe paper claims:\n\n{claims}\n{shown}\n{measured}"


def _picture(entry: Entry, picture: Picture, result: AuditResult) -> str:
    folder = DOCS / "gallery"
    folder.mkdir(exist_ok=True)
    name = picture.name(entry.scenario)
    chart = getattr(result.plot, picture.plot)(**dict(picture.choices))
    chart.properties(title=picture.caption).save(folder / name, scale_factor=SCALE)
    return f"![{picture.caption}](gallery/{name})\n"


def _expected(result: AuditResult) -> str:
    rows = ""
    for record in result.expectations:
        stated = safe(record.expectation + clean(where_text(record.where)))
        rows += f"| {STATUS_MARKS[record.status]} {record.status} | {stated} | {safe(record.why)} |\n"
    return f"| | expectation | what was found |\n| --- | --- | --- |\n{rows}"


if __name__ == "__main__":
    main()
