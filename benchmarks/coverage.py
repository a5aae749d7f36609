"""How often 95 % intervals of the numeric attacks hold the mean over draws: `python -m benchmarks.coverage [--write docs/calibration.md]`.

A figure of an audit is about one table, and its error bar about another draw of everything that is random: the noise, a secret matrix,
the records that an adversary was given. So each case is drawn many times on one table, and an interval should hold the mean over all its
draws 95 times in 100. Pooled over four skewed real tables, their attributes and all together, and three coalitions. ``bar / spread`` is
the root mean square of the stated standard errors over the standard deviation between draws, its median over cells.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets

from auditor.audit import audit_release
from auditor.results import Measurement, cells
from auditor.scenario.read import read_scenario
from auditor.tasks import table_of

Array = NDArray[np.float64]

METRICS = ("normalized_error", "collusion_gain")
ROWS, DRAWS, LEVELS = 300, 60, [0.3, 1.0]
LOW, HIGH = 0.925, 0.985
"""Coverage that is called right."""

LEARNT = [
    {"id": "udr, learnt prior", "name": "udr", "prior": "reconstructed"},
    {"id": "map-estimate, histogram", "name": "map-estimate"},
    {"id": "map-estimate, kde", "name": "map-estimate", "prior": "kde"},
    "distribution-analysis",
]
FILTERS = ["spectral-filter", "svd-filter", "pca-filter"]
ADDITIVE: dict[str, tuple[list[Any], list[Any]]] = {
    "moments": (
        ["perfect", {"estimated": {"rows": ROWS}}, {"estimated": {"rows": 100}}],
        ["ndr", "udr", "llse", "bayes-estimate", *FILTERS, {"id": "map-estimate, gaussian", "name": "map-estimate", "prior": "gaussian"}],
    ),
    "priors": (["perfect"], LEARNT),
    "records": ([{"known-records": 30}, {"known-records": 100}], [
        "known-io-regression", {"id": "known-io-regression, gcv", "name": "known-io-regression", "ridge": "gcv"},
    ]),
    "attributes": ([{"known-attributes": ["a0"]}], ["partial-disclosure"]),
}  # fmt: skip
ROTATED: dict[str, tuple[list[Any], list[Any]]] = {
    "records": ([{"known-records": 100}], ["ndr", "known-io-regression", "known-io-rotation", "ica"]),
    "sample": ([{"known-sample": 100}], ["known-sample", "ica"]),
    "unmatched": ([{"unmatched-records": 100}], ["ica"]),
}
SCHEMES = {name: ADDITIVE for name in ("independent", "correlated", "corner-wave")} | {"rotation-noise": ROTATED, "rotation": ROTATED}


def tables() -> dict[str, dict[str, Any]]:
    """Return four real tables whose attributes are skewed, or of sizes far apart: the ``data`` of a scenario, attributes named a0, a1 …"""
    cancer, wine, diabetes = datasets.load_breast_cancer(), datasets.load_wine(), datasets.load_diabetes(scaled=False)
    data = {"source": "cps", "rows": ROWS, "columns": ["salary", "age"]}
    cps = table_of(read_scenario({"data": data, "schemes": [{"name": "correlated", "levels": [1.0]}], "attacks": ["ndr"]}))[0]
    chosen = {
        "cps": cps.read(0, cps.rows),
        "breast cancer": cancer.data[:ROWS, [3, 13, 0, 6]],  # area, its error, radius, concavity
        "wine": wine.data[:, [12, 1, 9, 4]],  # proline, malic acid, colour, magnesium
        "diabetes": diabetes.data[:ROWS, [4, 6, 9]],  # serum cholesterol, HDL, glucose
    }
    return {name: {"source": "inline", "values": {f"a{j}": x[:, j].tolist() for j in range(x.shape[1])}} for name, x in chosen.items()}


class Row(NamedTuple):
    """Coverage of one attack with one knowledge under one scheme, over all tables: a line of the page."""

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
        """What names the line."""
        return self.scheme, self.attack, self.knowledge, self.metric

    @property
    def right(self) -> bool:
        """Whether the coverage is as it should be."""
        return self.intervals == 0 or LOW <= self.coverage <= HIGH


def drawn(data: dict[str, Any], scheme: str, knowledge: list[Any], attacks: list[Any], draws: int, seed: int) -> Iterator[Measurement]:
    """Yield the measurements of so many releases of one table; more records than it has rows are cut to half of them."""
    rows = len(data["values"]["a0"])
    scenario = read_scenario({
        "seed": seed, "data": data, "schemes": [{"name": scheme, "levels": LEVELS if scheme != "rotation" else [0.0, 0.0]}],
        "knowledge": [_within(state, rows) for state in knowledge], "coalitions": ["singles", "all"], "attacks": attacks,
    })  # fmt: skip
    table, moments = table_of(scenario)
    for replicate in range(1, draws + 1):
        yield from audit_release(scenario, {}, table, moments, scenario.schemes[0], replicate, False).measurements


def _within(state: Any, rows: int) -> Any:
    return {"estimated": {"rows": min(rows, state["estimated"]["rows"])}} if isinstance(state, dict) and "estimated" in state else state


class Cell(NamedTuple):
    """Intervals of one figure over all its draws."""

    given: int
    held: int
    refused: int
    ratio: float


def covered(records: Iterable[Measurement]) -> Iterator[tuple[Measurement, Cell]]:
    """Yield every figure that varies with the intervals that hold its mean over draws."""
    for group in cells(r for r in records if r.status == "ok" and r.metric in METRICS).values():
        value = np.array([r.value for r in group], dtype=np.float64)
        spread, mean = value.std(ddof=1), value.mean()
        if spread <= 1e-9 * max(abs(mean), 1e-3) or (group[0].metric == "collusion_gain" and len(group[0].coalition) < 2):
            continue  # a rebuild that is exact in every draw, a known attribute, a copy's gain over itself
        bars = [(r.std_error, r.ci_low, r.ci_high) for r in group if r.std_error is not None]
        error, low, high = np.array(bars, dtype=np.float64).reshape(-1, 3).T
        ratio = float(np.sqrt(np.mean(error**2)) / spread) if len(bars) else np.nan
        yield group[0], Cell(len(bars), int(((low <= mean) & (mean <= high)).sum()), len(group) - len(bars), ratio)


def measure(draws: int = DRAWS, seed: int = 1, only: str = "", worlds: Iterable[str] = ()) -> list[Row]:
    """Return a line for each attack, knowledge, scheme and metric."""
    found: dict[tuple[str, ...], list[Cell]] = {}
    for scheme, families in SCHEMES.items():
        for name, (knowledge, attacks) in families.items():
            for source, data in tables().items():
                if (worlds and source not in worlds) or only not in f"{scheme} {name}":
                    continue
                start = time.process_time()
                everything = f"estimated(rows={len(data['values']['a0'])})"
                for record, cell in covered(drawn(data, scheme, knowledge, attacks, draws, seed)):
                    state = "estimated, all rows" if record.knowledge == everything else record.knowledge
                    found.setdefault((scheme, str(record.attack), str(state), record.metric), []).append(cell)
                print(f"{scheme}, {name}, {source}: {time.process_time() - start:.1f} s", file=sys.stderr)
    return [_row(key, cells) for key, cells in found.items()]


def _row(key: tuple[str, ...], found: list[Cell]) -> Row:
    given, held, refused = (sum(getattr(cell, name) for cell in found) for name in ("given", "held", "refused"))
    ratios = [cell.ratio for cell in found if np.isfinite(cell.ratio)]
    return Row(*key, given, held / given if given else np.nan, float(np.median(ratios)) if ratios else np.nan, refused)


def table_of_rows(rows: Iterable[Row]) -> str:
    """Return the lines as a Markdown table."""
    head = ["scheme", "attack", "knowledge", "metric", "intervals", "coverage", "bar / spread", "refused"]
    lines = [f"| {' | '.join(head)} |", "| --- | --- | --- | --- | ---: | ---: | ---: | ---: |"]
    for r in rows:
        share = f"{r.coverage:.3f}" if r.right else f"**{r.coverage:.3f}**"
        lines.append(f"| {r.scheme} | {r.attack} | {r.knowledge} | {r.metric} | {r.intervals} | {share} | {r.ratio:.2f} | {r.without} |")
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Print the table, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="part of «scheme family»")
    parser.add_argument("--table", action="append", default=[])
    parser.add_argument("--save", type=Path, help="where to keep the lines as JSON")
    parser.add_argument("--write", type=Path)
    given = parser.parse_args(arguments)
    rows = measure(given.draws, given.seed, given.only, given.table)
    sys.stdout.write(table_of_rows(rows) + "\n")
    if given.save:
        given.save.write_text(json.dumps([row._asdict() for row in rows], indent=0) + "\n")
    return 0 if all(row.right for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
