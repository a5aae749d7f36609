"""How much of a pass over categories may be written to disk if no count of fewer than ten records is: `python -m benchmarks.small_counts`.

Audits tables of 20,000,000 records from their file, and looks at what every step of every pass
finds: whether each count in it is of ten records or more, or of none. Beside the steps that are so
by themselves it gives those that are in a run of steps whose sum is so, each run as short as can
be. For sums by value a value that other steps have and this one lacks is a count of none of them,
and too few."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import auditor
from auditor.audit.categorical.belief_gap import GapJob
from auditor.audit.categorical.first_pass import CountJob
from auditor.audit.categorical.posterior_pass import MeasureJob
from auditor.data import file_rows as streamed
from auditor.results.disclosure import FEWEST_RECORDS
from auditor.runs import passes

ROWS = 20_000_000
SCHEMES = [{"name": name, "levels": [0.3, 0.6, 0.45]} for name in ("uniform", "uniform-multilevel")]
ASKED = {
    "schema": 1,
    "title": "Small counts",
    "seed": 1,
    "schemes": SCHEMES,
    "knowledge": ["perfect"],
    "coalitions": ["subsets"],
    "attacks": ["posterior"],
    "measures": ["belief-gap", "marginal-gap"],
    "expect": ["no-collusion-gain"],
}


def tables(rows: int) -> Iterator[tuple[str, pd.DataFrame, dict[str, Any]]]:
    """Yield name, records and what is asked of them: made ones, and records of two real tables drawn with replacement."""
    draw = np.random.default_rng(51)
    salary, disease = (
        np.exp(draw.standard_normal(rows) + 10).round(),
        draw.choice(["cold", "flu", "HIV", "none"], rows),
    )
    people = pd.DataFrame({"salary": salary, "disease": disease})
    yield "disease, 4 values", people, {"columns": ["disease"], "categorical": ["disease"]}
    yield (
        "salary × disease, 24",
        people,
        {
            "columns": ["salary", "disease"],
            "bin": {"salary": {"quantile": 6}},
            "categorical": ["disease"],
        },
    )
    data = files("auditor.data") / "files"
    cps = pd.read_parquet(str(data / "cps.parquet")).sample(
        rows, replace=True, random_state=1, ignore_index=True
    )
    yield "CPS, salary in 50", cps, {"columns": ["salary"], "bin": {"salary": {"quantile": 50}}}
    yield (
        "CPS, household, 13",
        cps,
        {"columns": ["household_size"], "categorical": ["household_size"]},
    )
    cells = pd.read_csv(str(data / "wisconsin_original.csv")).sample(
        rows, replace=True, random_state=1, ignore_index=True
    )
    yield "Wisconsin, diagnosis, 2", cells, {"columns": ["diagnosis"], "categorical": ["diagnosis"]}
    yield (
        "Wisconsin, mitoses × diagnosis, 18",
        cells,
        {"columns": ["mitoses", "diagnosis"], "categorical": ["mitoses", "diagnosis"]},
    )


def counts(job: Any, part: Any) -> Iterator[np.ndarray]:
    """Yield every count that a part holds, fingerprints of coins left out."""
    if isinstance(job, CountJob):
        yield from (pairs.all()[1] for pairs in part.pairs.values())
        yield from (
            part.between,
            part.between[:, 0] - part.between[:, 1],
            part.history,
            *part.samples.values(),
            *part.law.counts.values(),
        )
    elif isinstance(job, MeasureJob):
        yield from (sums.counts for found in part.sums.values() for sums in found.values())
    elif isinstance(job, GapJob):
        yield from (outcomes._counts.all()[1] for outcomes in part.outcomes.values())
    else:
        yield from (
            found._counts.all()[1] for found in part.patterns.values() if found._counts is not None
        )
        yield from (
            found._counts.all()[1]
            for kind in (part.labelled, part.values)
            for found in kind.values()
        )
        yield from part.threes.values()


def may_be_written(job: Any, part: Any, whole: Any) -> bool:
    """Return whether no count in a part is of too few records."""
    if isinstance(job, MeasureJob):
        return all(
            (each[every > 0] >= FEWEST_RECORDS).all()
            for each, every in zip(counts(job, part), counts(job, whole), strict=True)
        )
    return all(((each == 0) | (each >= FEWEST_RECORDS)).all() for each in counts(job, part))


def summed(job: Any, found: list[list[Any]]) -> Any:
    """Return what steps found, added up."""
    whole = job.begin()
    for part in (part for parts in found for part in parts):
        whole.add(part)
    return whole


def shares(job: Any, found: list[list[Any]]) -> tuple[float, float]:
    """Return which share of the steps may be written alone, and in runs."""
    whole = summed(job, found)
    alone = sum(may_be_written(job, summed(job, [parts]), whole) for parts in found)
    first, last = 0, 0
    run = job.begin()
    for place, parts in enumerate(found):
        for part in parts:
            run.add(part)
        if may_be_written(job, run, whole):
            first, last, run = first + 1, place + 1, job.begin()
    return alone / len(found), last / len(found)


def main() -> int:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=ROWS)
    rows = parser.parse_args().rows
    real, seen, seconds = (
        passes.go_through,
        defaultdict[Any, list[tuple[Any, list[Any]]]](list),
        defaultdict[Any, float](float),
    )

    def watched(task: Any) -> Any:
        start = time.process_time()
        found = real(task)
        for scheme, job in task.jobs.items():  # there is one
            seen[scheme, task.number].append((job, found[scheme]))
            seconds[scheme, task.number] += time.process_time() - start
        return found

    passes.go_through, streamed.HELD_BYTES = watched, 0
    print(
        "| table | pass | seconds | steps | alone | in runs |\n| --- | --- | --- | --- | --- | --- |"
    )
    for name, frame, data in tables(rows):
        with tempfile.TemporaryDirectory() as folder:
            frame.to_parquet(Path(folder) / "table.parquet", row_group_size=2**17)
            seen.clear()
            seconds.clear()
            auditor.run(ASKED | {"data": {"source": str(Path(folder) / "table.parquet")} | data})
        for (scheme, number), steps in seen.items():
            job = steps[0][0]
            alone, runs = shares(job, [parts for _, parts in steps])
            what = f"{SCHEMES[scheme]['name']}, {number}: {type(job).__name__} | {seconds[scheme, number]:.1f}"
            print(f"| {name} | {what} | {len(steps)} | {alone:.0%} | {runs:.0%} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
