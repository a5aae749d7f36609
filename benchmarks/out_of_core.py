"""Time, memory and results of an audit of a file larger than memory.

``python -m benchmarks.out_of_core --rows 20000000`` writes the file (``--file`` uses an existing
one) and prints a table. The same run measures floors: reading the file alone, and drawing as many
normal variates as the audit must. Memory is the sum of PSS over all processes, sampled every
twentieth of a second; RSS counts shared pages once per process. Times are from a separate run
without sampling.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

SCENARIO = "scenarios/quickstart.yaml"
GROUP = 2**17
COLUMNS = ("age", "salary", "tax", "size")
SAMPLED = 0.05

FLOOR = """
import sys, pyarrow.parquet as pq
with pq.ParquetFile(sys.argv[1], pre_buffer=False) as file:
    for group in range(file.num_row_groups):
        file.read_row_group(group, use_threads=False)
"""
DRAW = """
import sys, numpy as np
rng, block = np.random.Generator(np.random.SFC64(0)), np.empty(2**18)
for _ in range(int(sys.argv[1]) // block.size):
    rng.standard_normal(out=block)
"""
RUN = """
import sys
from auditor.process.environment import begin_program
begin_program()  # as the command does
from auditor.audit.base import request
from auditor.data.columns import scan as streamed

held, shares, *arguments = sys.argv[1:]
streamed.HELD_BYTES = int(held)
request.MOST_STEPS = int(shares)
from auditor.cli import main
main(arguments)
"""


def make(path: Path, rows: int) -> None:
    """Write a table of four correlated, skewed columns, in row groups of 131,072 records."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(7)
    schema = pa.schema([(name, pa.float64()) for name in COLUMNS])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, GROUP):
            g = rng.standard_normal((4, min(GROUP, rows - start)))
            columns = [
                50 + 15 * g[0],
                30_000 * np.exp(0.6 * (0.3 * g[0] + g[1])),
                3_000 + 900 * (0.8 * g[1] + 0.6 * g[2]),
                3 + g[3],
            ]
            writer.write_table(pa.table(dict(zip(COLUMNS, columns, strict=True)), schema=schema))


def family(pid: int) -> list[int]:
    """Return a process and its descendants."""
    found = [pid]
    try:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            for child in (thread / "children").read_text().split():
                found += family(int(child))
    except OSError:
        pass
    return found


def memory(pid: int) -> tuple[float, float]:
    """Return PSS and RSS of a process and its family, in GiB."""
    total = {"Pss:": 0, "Rss:": 0}
    for member in family(pid):
        try:
            lines = Path(f"/proc/{member}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        for line in lines:
            if line[:4] in total:
                total[line[:4]] += int(line.split()[1])
    return total["Pss:"] / 2**20, total["Rss:"] / 2**20


class Measured(NamedTuple):
    """Wall and processor seconds, peak PSS and RSS in GiB, exit status."""

    wall: float
    cpu: float
    pss: float
    rss: float
    status: int


def measured(arguments: Sequence[str], again: Sequence[str] | None = None) -> Measured:
    """Run a command twice, or two similar commands: for time, and for memory.

    Sampling memory twenty times a second costs a fifth of a processor and delays the run.
    """
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    status = subprocess.run(
        arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
    ).returncode
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    process = subprocess.Popen(
        again or arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    pss = rss = 0.0
    while process.poll() is None:
        now = memory(process.pid)
        pss, rss = max(pss, now[0]), max(rss, now[1])
        time.sleep(SAMPLED)
    return Measured(wall, cpu, pss, rss, max(status, process.returncode))


def told(folder: Path) -> dict:
    """Return results.json without times and command."""
    found = json.loads((folder / "quickstart" / "results.json").read_text())
    for name in ("start", "duration", "command"):
        del found["provenance"][name]
    return found


class Cluster:
    """A Dask scheduler and two workers on loopback."""

    def __init__(self, folder: Path) -> None:
        place = folder / "scheduler.json"
        self._started = [
            self._start(
                "scheduler",
                "--host",
                "127.0.0.1",
                "--port",
                "0",
                "--no-dashboard",
                "--scheduler-file",
                str(place),
            )
        ]
        while not place.exists() or not place.stat().st_size:
            time.sleep(0.1)
        self.address = json.loads(place.read_text())["address"]
        for _ in range(2):
            options = (
                "--nthreads",
                "1",
                "--no-nanny",
                "--no-dashboard",
                "--memory-limit",
                "0",
                "--local-directory",
                str(folder),
            )
            self._started.append(self._start("worker", self.address, *options))

    @staticmethod
    def _start(kind: str, *options: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", *options]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def stop(self) -> None:
        """Stop the scheduler and its workers."""
        for process in reversed(self._started):
            process.kill()
            process.wait()


def main() -> int:
    """Measure and print; exit 1 when results differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument(
        "--file", type=Path, help="taken if it is there, made if not; a temporary one by default"
    )
    parser.add_argument("--columns", default="[age, salary]", help="as in YAML; null for all four")
    parser.add_argument(
        "--measures",
        default="[error-distribution]",
        help="as in YAML; the scenario's own by default",
    )
    parser.add_argument(
        "--attacks",
        default="[llse, udr]",
        help="as in YAML; linear ones, which need no row beyond moments, by default",
    )
    parser.add_argument("--make", action="store_true", help="make the file and do nothing else")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = given.file or folder / "big.parquet"
        if not path.exists():
            make(path, given.rows)
        if given.make:
            return 0
        return compare(path, folder, given)


def compare(path: Path, folder: Path, given: argparse.Namespace) -> int:
    """Run the audit in every way and print a line for each."""
    width = 4 if given.columns == "null" else len(given.columns.split(","))
    normals = given.rows * width * 16  # 5 fresh copies, 5 correlated, 1 shared and 5 nested
    # so that the file is in the page cache for everybody
    measured([sys.executable, "-c", FLOOR, str(path)])
    floor = measured([sys.executable, "-c", FLOOR, str(path)])
    draw = measured([sys.executable, "-c", DRAW, str(normals)])
    print(
        "| what | wall s | × reading | CPU s | × (reading + drawing) | peak PSS GiB | RSS GiB | results |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    both = floor.cpu + draw.cpu
    for what, found in (
        ("reading the file alone", floor),
        (f"drawing {normals:,} normals alone", draw),
    ):
        times = f"{found.wall:.2f} | {found.wall / floor.wall:.1f} | {found.cpu:.2f} |"
        print(
            f"| {what}, one process | {times} | {found.pss:.2f} | {found.rss:.2f} | |", flush=True
        )
    settings = [
        "--set",
        f"data.source={path}",
        "--set",
        f"data.columns={given.columns}",
        "--set",
        f"data.rows={given.rows}",
        "--set",
        f"measures={given.measures}",
        "--set",
        f"attacks={given.attacks}",
        "--quiet",
    ]
    large, never = 2**26, 2**62
    cluster = Cluster(folder)
    ways = {
        "2 workers": (large, 256, "--workers", "2"),
        "1 worker": (large, 256, "--workers", "1"),
        "4 workers": (large, 256, "--workers", "4"),
        "2 workers, rows cut in 7": (large, 7, "--workers", "2"),
        "Dask, 2 workers": (large, 256, "--cluster", cluster.address),
        "in memory, 1 process": (never, 256, "--workers", "1"),
    }
    first, differ = None, 0
    try:
        for what, (held, shares, *options) in ways.items():
            out = folder / what
            command = [
                sys.executable,
                "-c",
                RUN,
                str(held),
                str(shares),
                "run",
                SCENARIO,
                *settings,
                *options,
                "--output",
            ]
            ran = measured([*command, str(out)], [*command, str(folder / "watched")])
            if ran.status not in (0, 1):
                print(f"| {what} | exit status {ran.status} |")
                differ += 1
                continue
            found = told(out)
            first = first or found
            same = "the first" if found is first else "the same" if found == first else "DIFFERENT"
            differ += same == "DIFFERENT"
            times = f"{ran.wall:.1f} | {ran.wall / floor.wall:.1f} | {ran.cpu:.1f} | {ran.cpu / both:.2f}"
            print(f"| {what} | {times} | {ran.pss:.2f} | {ran.rss:.2f} | {same} |", flush=True)
    finally:
        cluster.stop()
    return int(differ > 0)


if __name__ == "__main__":
    sys.exit(main())
