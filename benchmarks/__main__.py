"""Measure the rows and write docs/evidence/performance.md: `python -m benchmarks --write`.

Programs of a row run one after another, round by round. Ratios are of one round. Exit status 1 if a
target is missed by more than 5 %. A round needs ten minutes on an idle machine.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks import FOLDER
from benchmarks.rows import Row, rows

ROOT = FOLDER.parent
PAGE = ROOT / "docs/evidence/performance.md"
INTRODUCTION = """\
# Performance

<!-- Written by `python -m benchmarks --write`; do not edit. -->

Each row is a command as a user types it, in a separate process, with a peer and a floor (`benchmarks/rows.py`). The peer is code by a
competent person with numpy, pyarrow or scikit-learn. Without a peer, it draws as many normals as the audit's releases.
The floor is work that the task cannot do without, so a target below the floor cannot be met.
Seconds are processor seconds, imports included, on one thread of linear algebra.
Figures are medians over rounds, with their range. A target is a ratio to the peer, or seconds.
`--before CHECKOUT` measures another checkout (with its `.venv`), too, in each round, and stops it after 60 s.
The last column has the largest parts of one more run (`python -m benchmarks.parts`): imports, attacks, rooms of `auditor`.

"""


ENVIRONMENT = {
    **os.environ,
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONDONTWRITEBYTECODE": "",  # an installed package has its bytecode
}


class Run(NamedTuple):
    """Seconds and peak megabytes of one program."""

    seconds: float
    megabytes: float


LIMIT = 60
"""Processor seconds after which a program is stopped."""


def measured(program: Sequence[str], wall: bool = False, checkout: Path = ROOT) -> Run:
    """Return the cost of a program, in seconds of the processor or of the clock.

    It imports the packages of a checkout. A program beyond the limit has the limit's cost.

    Raises
    ------
    RuntimeError
        It failed; an audit that finds a fault has status 1 and does not fail.
    """
    start = time.perf_counter()
    silent = subprocess.DEVNULL
    environment = {**ENVIRONMENT, "PYTHONPATH": str(checkout)}
    process = subprocess.Popen(program, env=environment, cwd=checkout, stdout=silent, stderr=silent)
    resource.prlimit(process.pid, resource.RLIMIT_CPU, (LIMIT, LIMIT + 1))
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1, -signal.SIGXCPU):
        raise RuntimeError(f"status {process.returncode}: {' '.join(program)[:200]}")
    took = time.perf_counter() - start if wall else used.ru_utime + used.ru_stime
    return Run(took, used.ru_maxrss / 1024)


def parts_of(command: Sequence[str]) -> str:
    """Return the parts of a command with most processor seconds."""
    program = [sys.executable, "-m", "benchmarks.parts", *command]
    found = subprocess.run(
        program, env=ENVIRONMENT, cwd=ROOT, capture_output=True, text=True, check=False
    )
    return found.stderr.splitlines()[-1]


def of_all(row: Row, folder: Path, checkout: Path) -> Run:
    """Return the cost of a row's commands with the code of a checkout."""
    for made in ("parquet", "csv"):
        shutil.rmtree(folder / made, ignore_errors=True)
    own = checkout / ".venv/bin/python"
    auditor = [str(own) if own.exists() else sys.executable, "-m", "auditor"]
    runs = [measured([*auditor, *each], row.wall, checkout) for each in row.commands]
    return Run(sum(run.seconds for run in runs), max(run.megabytes for run in runs))


def cost(runs: Sequence[Run]) -> str:
    """Return the median seconds, their range and the most megabytes of some runs."""
    if not runs:
        return "–"
    seconds = sorted(run.seconds for run in runs)
    low, middle, high = seconds[0], statistics.median(seconds), seconds[-1]
    spread = f" ({low:.2f}–{high:.2f})" if len(runs) > 1 else ""
    stopped = "> " * (middle >= 0.99 * LIMIT)
    return f"{stopped}{middle:.2f} s{spread}, {max(run.megabytes for run in runs):,.0f} MB"


def line(row: Row, folder: Path, rounds: int, before: Path | None) -> tuple[str, bool]:
    """Return a row of the table, and whether its bar is met within 5 %."""
    script = [sys.executable, "-c"]
    ours, peers, floors, earlier = [], [], [], []
    for _ in range(rounds):
        if before is not None:
            earlier.append(of_all(row, folder, before))
        ours.append(of_all(row, folder, ROOT))
        peers.append(measured([*script, row.peer, str(folder / "big.parquet")], row.wall))
        floors.append(measured([*script, row.floor, str(folder / "big.parquet")]))
    cells = [cost(runs) for runs in (earlier, ours, peers, floors)]
    ratios = sorted(a.seconds / b.seconds for a, b in zip(ours, peers, strict=True))
    ratio = statistics.median(ratios)
    found = statistics.median(run.seconds for run in ours) if row.seconds else ratio
    floor = statistics.median(run.seconds for run in floors)
    least = floor if row.seconds else floor / statistics.median(run.seconds for run in peers)
    unit = "s" if row.seconds else "×"
    met = "yes" if found <= row.bar else "within 5 %" if found <= 1.05 * row.bar else "**no**"
    if met == "**no**" and least > row.bar:
        met = f"**no**: the floor alone is {least:.2g} {unit}"
    spread = (
        f"{ratio:.3g} ({ratios[0]:.3g}–{ratios[-1]:.3g})" if len(ratios) > 1 else f"{ratio:.3g}"
    )
    for made in ("parquet", "csv"):
        shutil.rmtree(folder / made, ignore_errors=True)
    parts = parts_of(row.commands[-1])
    return (
        f"| {row.what} | {' | '.join(cells)} | {spread} | {row.bar:g} {unit} | {met} | {parts} |",
        not met.startswith("**no**"),
    )


def main(arguments: Sequence[str]) -> int:
    """Measure and print the table; write the page if wanted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="rows whose title contains this text")
    parser.add_argument("--skip", default="-", help="rows that are left out, likewise")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--before", type=Path, help="another checkout, measured in each round")
    parser.add_argument("--write", type=Path, nargs="?", const=PAGE, help="write the page")
    given = parser.parse_args(arguments)
    before = given.before and given.before.resolve()
    text = [
        f"Measured with Python {platform.python_version()} on {os.cpu_count()} cores, rounds: {given.rounds}, "
        f"load average {os.getloadavg()[0]:.1f}.\n",
        "| command | before | ours | peer | floor | ours / peer (range) | target | met | parts |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- | --- |",
    ]
    good = True
    with tempfile.TemporaryDirectory() as name:
        for row in rows(Path(name)):
            chosen = given.only in row.what and given.skip not in row.what
            if chosen:
                told, met = line(row, Path(name), given.rounds, before)
                good &= met
                text.append(told)
                print(told, flush=True)
                if given.write:
                    given.write.write_text(INTRODUCTION + "\n".join(text) + "\n")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
