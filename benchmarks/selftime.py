"""Where processor time goes: `python -m benchmarks.selftime [--rows 20000000] [--write docs/self-time.md]`.

Three runs as a user starts them, each under Python's profiler, whose own cost falls on short calls: the quickstart, 8,191 coalitions of
thirteen copies, and a table that stays in its file. A function's own time, without what it calls, is added up by what it is for; a
library's by whom it worked for. Floors are measured in the same run: what the job cannot do without, in plain numpy.
"""

from __future__ import annotations

import argparse
import pstats
import resource
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks import FOLDER
from benchmarks.out_of_core import DRAW, FLOOR, make

ROOT = FOLDER.parent
Function = tuple[str, int, str]
"""File, line and name."""
OTHER, DEPTH = "starting, and others", 8
"""What nobody is known to have called for; and through how many calls a library's work is followed back to whom it was for."""
LEAST = 0.01
"""Share of the whole below which a kind of work is counted among the others."""
KINDS = {
    "/auditor/schemes/": "drawing copies", "/numerics/random": "drawing copies", "/numerics/ziggurat": "drawing copies",
    "/numerics/cipher": "drawing copies", "/audit/pooling/": "looking for gains beyond linear attacks (boosted trees)",
    "/numerics/boosted_trees": "looking for gains beyond linear attacks (boosted trees)",
    "/numerics/sorted_edges": "looking for gains beyond linear attacks (boosted trees)",
    "/audit/drawn_law/": "testing the law of what was drawn", "/audit/law_tests/": "testing the law of what was drawn",
    "/attacks/joint_distribution": "joint-distribution-analysis",
    "/attacks/_grid": "joint-distribution-analysis", "/attacks/_directions": "joint-distribution-analysis",
    "/attacks/mixture": "mixture-estimate",
    "/attacks/_deconvolution": "mixture-estimate", "/attacks/serial_filter": "serial-filter", "/attacks/_spectra": "serial-filter",
    "/attacks/": "other attacks", "/numeric/error_tally": "errors of single records", "/numeric/reconstruct": "errors of single records",
    "/results/": "tables of results and files of them", "/runs/journal": "tables of results and files of them",
    "json/": "tables of results and files of them", "/numerics/moments": "moments", "/numerics/row_kernels": "errors of single records",
    "/auditor/data/": "reading and checking the table", "pyarrow": "reading and checking the table",
    "pandas": "reading and checking the table", "/reports/": "the report", "jinja2": "the report", "rich": "the report",
    "importlib": "imports", "/auditor/": "the audit's other work",
}  # fmt: skip
INTRODUCTION = """\
# Where time goes

<!-- Written by `python -m benchmarks.selftime --write docs/self-time.md`; do not edit. -->

Processor seconds of functions' own time in three runs, under Python's profiler, by what they are for; floors beside them were measured in
the same run, without it. The profiler takes time of its own, about as much again.
"""


def processor_seconds(arguments: Sequence[str]) -> float:
    """Return what a program takes, run to its end."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True, cwd=ROOT)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def own_times(folder: Path, arguments: Sequence[str]) -> Counter[str]:
    """Return the seconds of each kind of work in a run of the program."""
    stats = folder / "stats"
    command = ["-c", PROFILED, str(stats), "run", *arguments, "--quiet", "--output", str(folder / "out")]
    subprocess.run([sys.executable, *command], check=True, capture_output=True, cwd=ROOT)
    if not (folder / "out").exists():
        raise SystemExit(f"the run was refused: auditor run {' '.join(arguments)}")
    timed = pstats.Stats(str(stats)).stats  # type: ignore[attr-defined]
    mixed = {function: {kind: 1.0} if (kind := kind_of(function)) else {OTHER: 1.0} for function in timed}
    for _ in range(DEPTH):
        mixed |= {function: by_callers(callers, mixed) for function, (*_, callers) in timed.items() if callers and not kind_of(function)}
    found: Counter[str] = Counter()
    for function, (_, _, own, _, _) in timed.items():
        for kind, share in mixed[function].items():
            found[kind] += own * share
    return found


def by_callers(callers: dict[Function, tuple[int, int, float, float]], mixed: dict[Function, dict[str, float]]) -> dict[str, float]:
    """Return what a library's function is for: what its callers are for, by the time that it took for each."""
    whole = sum(taken for *_, taken in callers.values()) or 1.0
    found: Counter[str] = Counter()
    for caller, (*_, taken) in callers.items():
        for kind, share in mixed[caller].items():
            found[kind] += share * taken / whole
    return dict(found)


def kind_of(function: Function) -> str | None:
    """Return what code is for, by the file it stands in; None of a library that serves whoever calls it."""
    return next((kind for part, kind in KINDS.items() if part in function[0]), None)


def table(title: str, found: Counter[str], floors: dict[str, float]) -> str:
    """Return one run's table."""
    whole = sum(found.values())
    shown = {kind: own for kind, own in found.most_common() if own >= LEAST * whole}
    if len(shown) < len(found):
        shown["others"] = whole - sum(shown.values())
    lines = [f"## {title}", "", f"{whole:.1f} s in all.", "", "| what for | s | share |", "| --- | ---: | ---: |"]
    lines += [f"| {kind} | {own:.2f} | {own / whole:.0%} |" for kind, own in shown.items()]
    lines += ["", "| floor | s |", "| --- | ---: |", *(f"| {what} | {taken:.2f} |" for what, taken in floors.items()), ""]
    return "\n".join(lines)


def tables(folder: Path, rows: int) -> Iterator[str]:
    """Yield the table of each run."""
    imports = processor_seconds(["-c", "import numpy, scipy.linalg, scipy.special, pandas, pydantic, sklearn.ensemble, pyarrow.parquet"])
    draw = processor_seconds(["-c", DRAW, str(193_682 * 2 * 16)])
    floors = {"importing numpy, SciPy, pandas, pyarrow, pydantic, scikit-learn": imports, "drawing 6.2 million normals": draw,
              "64 fits of boosted trees by scikit-learn to 3,333 or 10,000 rows": processor_seconds(["-c", TREES]) - imports}  # fmt: skip
    yield table("The quickstart", own_times(folder, ["scenarios/quickstart.yaml"]), floors)

    scenario = folder / "coalitions.yaml"
    scenario.write_text(COALITIONS)
    floors = {"drawing 2.6 million normals": processor_seconds(["-c", DRAW, str(100_000 * 2 * 13)]),
              "8,191 systems of linear equations, of 2 to 26 unknowns": processor_seconds(["-c", SOLVE])}  # fmt: skip
    yield table("8,191 coalitions of thirteen copies, 100,000 × 2", own_times(folder, [str(scenario)]), floors)

    path = folder / "big.parquet"
    make(path, rows)
    settings = [f"data.source={path}", "data.columns=null", "attacks=[llse]", "measures=[]"]
    found = own_times(folder, ["scenarios/quickstart.yaml", *(word for each in settings for word in ("--set", each))])
    floors = {"reading the file once": processor_seconds(["-c", FLOOR, str(path)]),
              f"drawing {rows * 64:,} normals": processor_seconds(["-c", DRAW, str(rows * 64)])}  # fmt: skip
    yield table(f"{rows:,} × 4 from a file, the quickstart's schemes, linear attacks", found, floors)


PROFILED = """
import cProfile, sys, time
profile = cProfile.Profile(time.process_time)
profile.enable()
try:
    from auditor.cli import main
    main(sys.argv[2:])
except SystemExit:
    pass
profile.disable()
profile.dump_stats(sys.argv[1])
"""
COALITIONS = """
schema: 1
title: 8,191 coalitions
seed: 3
data: {source: census-like, rows: 100000, columns: [age, income]}
schemes: [{name: correlated, levels: {uniform: [0.25, 1.0], count: 13}}]
coalitions: [subsets]
attacks: [llse]
"""
SOLVE = """
import numpy as np
from itertools import combinations
K = np.cov(np.random.default_rng(0).standard_normal((40, 100)))[:26, :26]
for size in range(1, 14):
    for held in combinations(range(13), size):
        index = [2 * copy + j for copy in held for j in (0, 1)]
        np.linalg.solve(K[np.ix_(index, index)], K[index, :2])
"""
TREES = """
import numpy as np, pandas, pydantic, pyarrow.parquet, scipy.linalg, scipy.special
from sklearn.ensemble import HistGradientBoostingRegressor
from auditor.numerics.boosted_trees import LEAVES, PENALTY, RATE, TREES
given = {"max_iter": TREES, "learning_rate": RATE, "max_leaf_nodes": LEAVES, "l2_regularization": PENALTY, "early_stopping": False}
rng = np.random.default_rng(0)
for rows, columns in ((10_000, 10), (3_333, 8), (3_333, 6), (3_333, 4)):
    for shown in (2, columns, columns, columns) * 4:
        learner = HistGradientBoostingRegressor(min_samples_leaf=rows // 50, **given)
        learner.fit(rng.standard_normal((rows, shown)), rng.standard_normal(rows)).predict(rng.standard_normal((rows, shown)))
"""


def main(arguments: list[str]) -> int:
    """Print the tables, and write the page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--write", type=Path, help="the page to write")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        text = "\n".join([INTRODUCTION, *tables(Path(name), given.rows)])
    sys.stdout.write(text)
    if given.write:
        given.write.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
