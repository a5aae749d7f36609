"""Before and after: `python -m benchmarks.before OLD_COMMIT [--rounds 3] [--only WORDS] [--rows 20000000] [--write docs/before.md]`.

What a user calls, by the code of an old commit and by the code that stands here, in turn, in processes of their own: processor seconds
with those of workers, seconds until the report is on the terminal, memory at its peak, sizes of what is written. Ratios are of pairs.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.out_of_core import make
from benchmarks.same_results import ROOT, git, installed

Figures = dict[str, float]
Case = Callable[[Path, Path], Figures]
"""Measures what code in one folder takes, with another folder to write to."""
TWO = ("--set", "attacks=[llse, udr]")
RUNS = ("processor s", "s to the terminal", "wall s")
INTRODUCTION = """\
# Before and after

<!-- Written by `python -m benchmarks.before {commit} --rounds {rounds} --write PAGE`; do not edit. -->

What users call, by the code of {commit} and by that of {now}, in turn in one run: medians with the least and the most of {rounds} rounds,
and the median of the rounds' ratios. Processor seconds include those of worker processes; the terminal has the report after so many seconds
of the clock. Attacks and tests that the newer code has and the older one has not are part of what it takes.

| what | figure | before | after | ratio |
| --- | --- | ---: | ---: | ---: |
"""


def started(words: list[str], code: Path) -> tuple[Figures, str]:
    """Run Python with the code in a folder, byte code kept as on a user's machine; return what that took and what it printed."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | {"PYTHONPATH": str(code)}
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([sys.executable, *words], cwd=code, env=environment, **streams) as program:
        assert program.stdout is not None
        first = program.stdout.read(1)
        reached = time.perf_counter() - start
        printed = (first + program.stdout.read()).decode()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"processor s": processor, "s to the terminal": reached, "wall s": time.perf_counter() - start}, printed


def command(*words: str, figures: tuple[str, ...] = ("processor s", "wall s")) -> Case:
    """Return the case of a command; ``{out}`` stands for the folder to write to."""

    def measure(code: Path, out: Path) -> Figures:
        found, _ = started(["-m", "auditor.cli", *(word.format(out=out) for word in words)], code)
        return {name: found[name] for name in figures}

    return measure


def script(text: str) -> Case:
    """Return the case of a script that says itself what it measured, as ``name=value`` a line."""

    def measure(code: Path, out: Path) -> Figures:
        printed = started(["-c", text.replace("OUT", str(out))], code)[1]
        return {name: float(value) for name, _, value in (line.partition("=") for line in printed.splitlines())}

    return measure


RUN = """
import resource, time, auditor, numpy as np
from threadpoolctl import threadpool_limits
import scipy.linalg
def taken(work, rounds=5):
    work()
    times = []
    for _ in range(rounds):
        start = time.process_time(); work(); times.append(time.process_time() - start)
    print(f"processor s={sorted(times)[rounds // 2]}")
def peak():
    print(f"peak MB={resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}")
def scenario(rows, copies, coalitions=["subsets"]):
    data = {"source": "census-like", "rows": rows, "columns": ["age", "income"]}
    schemes = [{"name": "correlated", "levels": {"uniform": [0.25, 1.0], "count": copies}}]
    return {"data": data, "coalitions": coalitions, "attacks": ["llse"], "schemes": schemes, "seed": 3}
limits = threadpool_limits(1)
X = np.random.default_rng(0).multivariate_normal([0.0, 0.0], [[1.0, 0.5], [0.5, 1.0]], 1_000_000)
"""
CASES: dict[str, Case] = {
    **{f"`auditor {words}`": command(*words.split(), figures=("wall s",)) for words in (
        "--help", "list", "show llse", "check scenarios/quickstart.yaml", "check scenarios/li2012-fig3.yaml",
    )},
    "quickstart, two attacks": command("run", "scenarios/quickstart.yaml", "--output", "{out}", *TWO, figures=RUNS),
    "quickstart, all attacks that each has": command(
        "run", "scenarios/quickstart.yaml", "--output", "{out}", figures=RUNS),
    "`auditor.run`, 1,023 coalitions of 100,000 × 2 × 10": script(RUN + "taken(lambda: auditor.run(scenario(100_000, 10)))"),
    "results of 65,535 coalitions": script(RUN + """
import pathlib
result = auditor.run(scenario(10_000, 16))
folder = result.save("OUT")
print(f"results MB={sum(p.stat().st_size for p in pathlib.Path(folder).iterdir()) / 1e6}")
peak()"""),
    "400 copies of 20,000 × 2, singles and prefixes": script(RUN + """
start = time.process_time()
auditor.run(scenario(20_000, 400, ["singles", "prefixes"]))
print(f"processor s={time.process_time() - start}"); peak()"""),
    "`auditor.perturb`, ten copies of 100,000 × 2": script(RUN + """
taken(lambda: auditor.perturb(X[:100_000], 'corner-wave', np.linspace(0.1, 1, 10), seed=1))"""),
    "`auditor.perturb`, 600,000 categories": script(RUN + """
codes = np.random.default_rng(1).integers(0, 50, 600_000)
taken(lambda: auditor.perturb(codes, 'uniform', [0.3], seed=1))"""),
    "`auditor.attack('ndr')`, 1,000,000 × 2": script(RUN + """
release = auditor.perturb(X, 'independent', [0.5], seed=1)
taken(lambda: auditor.attack('ndr', release))"""),
    "`auditor.attack('distribution-analysis')`, 100,000 × 2": script(RUN + """
release = auditor.perturb(X[:100_000], 'independent', [0.5], seed=1)
taken(lambda: auditor.attack('distribution-analysis', release), 1)"""),
    "`auditor.attack('ica')`, 8,000 × 4": script(RUN + """
release = auditor.perturb(np.random.default_rng(0).exponential(size=(8_000, 4)), 'rotation', [0.0], seed=1)
taken(lambda: auditor.attack('ica', release, knowledge={'known-records': 50}), 1)"""),
}  # fmt: skip


def from_file(path: Path, workers: int) -> Case:
    """Return the case of a table of four columns that stays in its file."""
    words = [f"data.source={path}", "data.columns=null", "attacks=[llse]", "measures=[]"]
    settings = [word for each in words for word in ("--set", each)]
    return command("run", "scenarios/quickstart.yaml", "--output", "{out}", "--quiet", "--workers", str(workers), *settings)


def rows_of(name: str, case: Case, sides: dict[str, Path], rounds: int) -> Iterator[str]:
    """Measure a case by both sides in turn, and yield a line for each figure."""
    pairs: list[dict[str, Figures]] = []
    for number in range(rounds + 1):
        with tempfile.TemporaryDirectory() as out:
            pair = {side: case(code, Path(out, side)) for side, code in sides.items()}
        if number:  # the first warms up: byte code, and files in the system's memory
            pairs.append(pair)
    for figure in pairs[0]["after"]:
        known = [pair for pair in pairs if figure in pair["before"]]
        told = [spread([pair[side][figure] for pair in known]) for side in sides]
        ratio = f"{median(pair['after'][figure] / pair['before'][figure] for pair in known):.2f}" if known else ""
        yield f"| {name} | {figure} | {told[0]} | {told[1] or spread([pair['after'][figure] for pair in pairs])} | {ratio} |"


def spread(values: list[float]) -> str:
    """Write the median of some values, the least and the most."""
    return f"{median(values):.3g} ({min(values):.3g}–{max(values):.3g})" if values else ""


def main(arguments: list[str]) -> int:
    """Print the table as it grows, and write the page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("commit")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="cases whose name has this")
    parser.add_argument("--rows", type=int, default=20_000_000, help="of the table in a file; 0 leaves it out")
    parser.add_argument("--write", type=Path, help="the page to write")
    given = parser.parse_args(arguments)
    lines = []
    with tempfile.TemporaryDirectory() as name:
        tree, sides = Path(name) / "old", {"before": ROOT, "after": ROOT}
        cases, path = dict(CASES), Path(name) / "big.parquet"
        many = {f"{given.rows:,} × 4 from a file, linear attacks, workers: {count}": from_file(path, count) for count in (1, 2)}
        cases |= many if given.rows else {}
        cases = {what: case for what, case in cases.items() if given.only in what}
        if cases.keys() & many.keys():
            make(path, given.rows)
        git("worktree", "add", "--detach", tree, given.commit)
        try:
            sides["before"] = installed(tree)
            for what, case in cases.items():
                for line in rows_of(what, case, sides, given.rounds):
                    lines.append(line)
                    print(line, flush=True)
        finally:
            git("worktree", "remove", "--force", tree)
    if given.write:
        commits = {"commit": git("rev-parse", "--short", given.commit), "now": git("rev-parse", "--short", "HEAD")}
        given.write.write_text(INTRODUCTION.format(rounds=given.rounds, **commits) + "\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
