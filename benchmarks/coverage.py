"""Coverage of 95 % intervals of numeric attacks.

`python -m benchmarks.coverage [--write docs/evidence/calibration.md]`. ``--save FILE`` keeps
measured lines, and a later run continues from it; `--only "corner-wave records"` measures a part.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn import datasets

from auditor.audit.base.request import ReleaseRequest
from auditor.audit.engine import audit_release
from auditor.results.records import Measurement, cells
from auditor.runs.tables import table_of
from auditor.scenario.read import read_scenario
from benchmarks import FOLDER

METRICS = ("normalized_error", "collusion_gain", "named")
ROWS, LEVELS = 300, [0.3, 1.0]
DRAWS = {
    "moments": 40,
    "priors": 36,
    "records": 24,
    "attributes": 40,
    "matrices": 32,
    "mixtures": 36,
    "samples": 40,
    "trees": 26,
    "inverses": 32,
    "series": 48,
    "sorted series": 24,
    "linkage": 60,
    "cosines": 30,
}
"""Releases of each table, so that most lines pool a thousand gains; some seventy processor minutes
in all."""
FEW = 10
"""Releases by corner-wave where attacks take long: its gains are 0 in all of them."""
LONG = ("mixtures", "samples", "trees", "series", "sorted series")
LOW, HIGH = 0.925, 0.985
"""Coverage that is called right."""
MOSTLY = 0.9
"""A figure that is one and the same in more of its draws is no test of an interval: its mean is
that of a rare event."""
BEFORE, COMMIT = FOLDER / "coverage_before.json", "9c749b9"
"""What `measure` found with 60 draws of each at an earlier commit."""

INTRODUCTION = """\
# Calibration of error bars

<!-- Written by `python -m benchmarks.coverage --write docs/evidence/calibration.md`; do not edit. -->

A figure of an audit is about one table, and its error bar about another draw of everything that is random: the noise, a secret matrix, the
rows that an adversary estimates from or was given in clear. So each case below was drawn many times on one table, and an interval should
hold the mean over those draws 95 times in 100. Lines pool four skewed real tables (300 households of the Current Population Survey, and
scikit-learn's breast cancer, wine and diabetes tables), each attribute and all attributes together, and the coalitions of copy 1, of copy 2
and of both, at levels 0.3 and 1. Attributes of one release share its draw, so a line of 1,000 intervals is known to about ± 2 points.
*sorted rows* are tables in the order of their first attribute; else rows follow one another as they do in the source. Random projections
are cosine transforms that drop one coefficient.

*bar / spread* is the root mean square of the stated standard errors over the standard deviation between draws, its median over figures.
**Bold** is coverage outside 92.5 to 98.5 %. Figures that are the same in nine draws of ten are left out.
*refused* are figures with a request for replicates in place of an error bar. If the best copy's error varies by more than a third of its
size, a gain is a ratio without a mean. An error is such a ratio if an attack inverts a matrix learnt under noise (`known-io-inverse`).
"""

ESTIMATED_PRIORS = [
    {"id": "udr, learnt prior", "name": "udr", "prior": "reconstructed"},
    {"id": "map-estimate, histogram", "name": "map-estimate"},
    {"id": "map-estimate, kde", "name": "map-estimate", "prior": "kde"},
    "distribution-analysis",
]
FILTERS = ["spectral-filter", "svd-filter", "pca-filter"]
Families = dict[str, tuple[list[Any], list[Any]]]
ADDITIVE: Families = {
    "moments": (
        ["perfect", {"estimated": {"rows": ROWS}}, {"estimated": {"rows": 100}}],
        [
            "ndr",
            "udr",
            "llse",
            *FILTERS,
            {"id": "map-estimate, gaussian", "name": "map-estimate", "prior": "gaussian"},
        ],
    ),
    "priors": (["perfect"], ESTIMATED_PRIORS),
    "records": (
        [{"known-records": 30}, {"known-records": 100}],
        [
            "known-io-regression",
            {"id": "known-io-regression, gcv", "name": "known-io-regression", "ridge": "gcv"},
        ],
    ),
    "attributes": ([{"known-attributes": ["a0"]}], ["partial-disclosure"]),
    "mixtures": (["perfect", {"estimated": {"rows": 100}}], ["mixture-estimate"]),
    "samples": (
        [{"known-records": 100}, {"unmatched-records": 100}, {"known-sample": 100}],
        ["sample-estimate"],
    ),
    "trees": ([{"known-records": 100}], ["known-io-boosting"]),
    "inverses": ([{"known-records": 30}, {"known-records": 100}], ["known-io-inverse"]),
    "series": (["perfect", {"estimated": {"rows": 100}}], ["serial-filter"]),
    "sorted series": (["perfect", {"estimated": {"rows": 100}}], ["serial-filter"]),
    "linkage": ([{"known-attributes": ["a0"]}], ["record-linkage"]),
}
ROTATED: Families = {
    "matrices": (
        [{"known-records": 100}, {"known-sample": 100}],
        ["known-io-regression", "ica", "known-sample"],
    )
}
PROJECTED: Families = {
    "cosines": (
        [{"known-records": 30}, {"unmatched-records": 30}, {"known-sample": 30}],
        ["transform-match"],
    )
}
SCHEMES = {
    **dict.fromkeys(("independent", "correlated", "corner-wave"), ADDITIVE),
    **dict.fromkeys(("rotation-noise", "rotation"), ROTATED),
    "random-projection": PROJECTED,
}


def tables() -> dict[str, dict[str, Any]]:
    """Return ``data`` sections of four real tables with skewed attributes.

    Attributes are named a0, a1, …
    """
    cancer, wine, diabetes = (
        datasets.load_breast_cancer(),
        datasets.load_wine(),
        datasets.load_diabetes(scaled=False),
    )
    data = {"source": "cps", "rows": ROWS, "columns": ["salary", "age"]}
    cps = table_of(
        read_scenario(
            {"data": data, "schemes": [{"name": "correlated", "levels": [1.0]}], "attacks": ["ndr"]}
        )
    )[0]
    chosen = {
        "cps": cps.read(0, cps.rows),
        "breast cancer": cancer.data[:ROWS, [3, 13, 0, 6]],  # area, its error, radius, concavity
        "wine": wine.data[:, [12, 1, 9, 4]],  # proline, malic acid, colour, magnesium
        "diabetes": diabetes.data[:ROWS, [4, 6, 9]],  # serum cholesterol, HDL, glucose
    }
    return {
        name: {"source": "inline", "values": {f"a{j}": x[:, j].tolist() for j in range(x.shape[1])}}
        for name, x in chosen.items()
    }


class Row(NamedTuple):
    """Coverage of one attack, knowledge and scheme over all tables."""

    scheme: str
    attack: str
    knowledge: str
    metric: str
    intervals: int
    coverage: float
    ratio: float
    without: int
    """Intervals that the audit refused to give."""

    @property
    def key(self) -> tuple[str, ...]:
        """Identifier of the line."""
        return self.scheme, self.attack, self.knowledge, self.metric

    @property
    def right(self) -> bool:
        """Whether the coverage is within its limits."""
        return self.intervals == 0 or LOW <= self.coverage <= HIGH


def drawn(
    data: dict[str, Any],
    scheme: str,
    knowledge: list[Any],
    attacks: list[Any],
    draws: int,
    seed: int,
) -> Iterator[Measurement]:
    """Yield the measurements of a number of releases of one table.

    Knowledge of more records than the table has is cut to half of its records.
    """
    rows, width = len(data["values"]["a0"]), len(data["values"])
    use: dict[str, Any] = {"levels": LEVELS if scheme != "rotation" else [0.0, 0.0]}
    if scheme == "random-projection":  # all cosine coefficients but the least one
        use = {"matrix": "dct", "dimensions": width - 1, "copies": 2}
    scenario = read_scenario(
        {
            "seed": seed,
            "data": data,
            "schemes": [{"name": scheme} | use],
            "knowledge": [_within(state, rows) for state in knowledge],
            "coalitions": ["singles", "all"],
            "attacks": attacks,
        }
    )
    table, _ = table_of(scenario)
    for replicate in range(1, draws + 1):
        yield from audit_release(
            ReleaseRequest(scenario, {}, table, scenario.schemes[0], replicate)
        ).measurements


def _within(state: Any, rows: int) -> Any:
    return (
        {"estimated": {"rows": min(rows, state["estimated"]["rows"])}}
        if isinstance(state, dict) and "estimated" in state
        else state
    )


def in_order(data: dict[str, Any]) -> dict[str, Any]:
    """Return a table with its rows in the order of its first attribute."""
    order = np.argsort(data["values"]["a0"], kind="stable")
    return data | {
        "values": {
            name: np.asarray(column)[order].tolist() for name, column in data["values"].items()
        }
    }


class Cell(NamedTuple):
    """Intervals of one figure over all its draws."""

    given: int
    held: int
    refused: int
    ratio: float


def covered(records: Iterable[Measurement]) -> Iterator[tuple[Measurement, Cell]]:
    """Yield random figures, and their intervals that hold the mean."""
    for group in cells(r for r in records if r.status == "ok" and r.metric in METRICS).values():
        value = np.array([r.value for r in group], dtype=np.float64)
        spread, mean = value.std(ddof=1), value.mean()
        size = 1.0 if group[0].metric == "collusion_gain" else max(abs(mean), 1e-3)
        # a smaller gain is rounding if the error is almost 0
        same = np.mean(np.abs(value - np.median(value)) <= 1e-9 * size)
        if same > MOSTLY or (group[0].metric == "collusion_gain" and len(group[0].coalition) < 2):
            continue  # an exact rebuild, a known attribute, a copy's gain over itself
        bars = [(r.std_error, r.ci_low, r.ci_high) for r in group if r.std_error is not None]
        error, low, high = np.array(bars, dtype=np.float64).reshape(-1, 3).T
        ratio = float(np.sqrt(np.mean(error**2)) / spread) if len(bars) else np.nan
        yield (
            group[0],
            Cell(
                len(bars),
                int(((low <= mean) & (mean <= high)).sum()),
                len(group) - len(bars),
                ratio,
            ),
        )


def measure(
    only: str = "", worlds: Iterable[str] = (), draws: int | None = None, seed: int = 1
) -> Iterator[tuple[str, list[Row]]]:
    """Yield names and lines for each scheme and family of attacks."""
    sources = {name: data for name, data in tables().items() if not worlds or name in worlds}
    for scheme, families in SCHEMES.items():
        for family, (knowledge, attacks) in families.items():
            if only in f"{scheme} {family}":
                found: dict[tuple[str, ...], list[Cell]] = {}
                label, many = (
                    scheme,
                    FEW if scheme == "corner-wave" and family in LONG else DRAWS[family],
                )
                if in_rows := family.startswith("sorted"):
                    label = f"{scheme}, sorted rows"
                for data in map(in_order, sources.values()) if in_rows else sources.values():
                    everything = f"estimated(rows={len(data['values']['a0'])})"
                    for record, cell in covered(
                        drawn(data, scheme, knowledge, attacks, draws or many, seed)
                    ):
                        state = (
                            "estimated, all rows"
                            if record.knowledge == everything
                            else str(record.knowledge)
                        )
                        found.setdefault(
                            (label, str(record.attack), state, record.metric), []
                        ).append(cell)
                yield f"{scheme} {family}", [_row(key, cells) for key, cells in found.items()]


def _row(key: tuple[str, ...], found: list[Cell]) -> Row:
    given, held, refused = (
        sum(getattr(cell, name) for cell in found) for name in ("given", "held", "refused")
    )
    ratios = [cell.ratio for cell in found if np.isfinite(cell.ratio)]
    return Row(
        *key,
        given,
        held / given if given else np.nan,
        float(np.median(ratios)) if ratios else np.nan,
        refused,
    )


def table_of_rows(rows: Iterable[Row], before: Mapping[tuple[str, ...], Row]) -> str:
    """Return current and earlier lines as a Markdown table."""
    head = [
        "attack",
        "knowledge",
        "scheme",
        "metric",
        "intervals",
        "coverage",
        "bar / spread",
        "refused",
        "coverage before",
        "bar before",
    ]
    lines = [
        f"| {' | '.join(head)} |",
        "| --- | --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for r in rows:
        was = before.get(r.key)
        old = (_marked(was.coverage), f"{was.ratio:.2f}") if was is not None else ("", "")
        cells = (
            r.attack,
            r.knowledge,
            r.scheme,
            r.metric,
            f"{r.intervals:,}",
            _marked(r.coverage),
            f"{r.ratio:.2f}",
            str(r.without),
            *old,
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _marked(coverage: float) -> str:
    return f"{coverage:.3f}" if LOW <= coverage <= HIGH else f"**{coverage:.3f}**"


def summary(rows: Sequence[Row]) -> str:
    """Return coverage by attack, knowledge and metric, all schemes pooled."""
    pooled: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        if row.intervals:
            pooled.setdefault(row.key[1:], []).append(row)
    lines = [
        "| attack | knowledge | metric | intervals | coverage |",
        "| --- | --- | --- | ---: | ---: |",
    ]
    for (attack, knowledge, metric), parts in sorted(pooled.items()):
        count = sum(part.intervals for part in parts)
        share = sum(part.intervals * part.coverage for part in parts) / count
        lines.append(f"| {attack} | {knowledge} | {metric} | {count:,} | {_marked(share)} |")
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Print the tables, and write the page with ``--write``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--only", default="", help="part of «scheme family», as «corner-wave records»"
    )
    parser.add_argument(
        "--draws", type=int, help="releases of each table instead of the usual number"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--save", type=Path, help="where measured lines are kept as JSON, and taken from"
    )
    parser.add_argument("--write", type=Path, help="the page to write")
    given = parser.parse_args(arguments)
    kept: dict[str, list[Row]] = {}
    if given.save and given.save.exists():
        kept = {
            name: [Row(*row) for row in rows]
            for name, rows in json.loads(given.save.read_text()).items()
        }
    names = [f"{scheme} {family}" for scheme, families in SCHEMES.items() for family in families]
    for name in names:
        if name not in kept and given.only in name:
            kept.update(measure(name, draws=given.draws, seed=given.seed))
            if given.save:
                given.save.write_text(json.dumps(kept, indent=0) + "\n")
    rows = [row for name in names for row in kept.get(name, [])]
    before = {row.key: row for row in (Row(**each) for each in json.loads(BEFORE.read_text()))}
    parts = [
        "## All schemes together",
        summary(rows),
        f"## By scheme, and before (commit {COMMIT}, 60 draws)",
        table_of_rows(rows, before),
    ]
    text = "\n\n".join(parts) + "\n"
    sys.stdout.write(text)
    if given.write:
        given.write.write_text(f"{INTRODUCTION}\n{text}")
    return 0 if all(row.right for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
