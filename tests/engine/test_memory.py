"""What `auditor check` says a worker process will need, against what a run in a process of its own came to need."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

FACTOR = 1.6
"""Either way. What an interpreter with its libraries takes, half of these runs' memory, differs that much from machine to machine."""

RUN = """
import re, sys
from pathlib import Path
from auditor.data import streamed
streamed.HELD_BYTES = int(sys.argv[1])
import auditor
auditor.run(sys.argv[2])
# not ru_maxrss, which a process inherits from the one that started it
print(int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) // 1024)
"""
CHECK = """
import sys
from auditor.data import streamed
streamed.HELD_BYTES = int(sys.argv[1])
from auditor.cli import main
main(["check", sys.argv[2]])
"""

SCENARIO = """
data: {{source: table.parquet, standardize: true}}
schemes: {{name: {scheme}, levels: [0.3, 0.45, 0.6, 0.8, 1.0]}}
attacks: [{attacks}]
knowledge: [perfect]
coalitions: [{coalitions}]
measures: [{measures}]
"""
CASES = {
    "streamed": (0, "ndr, llse", "subsets", ""),
    "streamed, spread of errors": (0, "ndr, llse", "subsets", "error-distribution"),
    "streamed, attack on rows": (0, "udr", "prefixes", ""),
    "held": (2**40, "ndr, llse", "subsets", ""),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Three million records of four numbers: 92 MiB, and 458 MiB of copies."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path_factory.mktemp("memory")
    rng = np.random.default_rng(1)
    pq.write_table(pa.table({f"x{k}": rng.standard_normal(3_000_000) for k in range(4)}), path / "table.parquet", row_group_size=2**17)
    return path


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads peak memory from /proc, which this system has not")
@pytest.mark.parametrize("case", CASES)
def test_predicted_and_measured(folder, case):
    held, attacks, coalitions, measures = CASES[case]
    file = folder / "audit.yaml"
    file.write_text(SCENARIO.format(scheme="corner-wave", attacks=attacks, coalitions=coalitions, measures=measures))
    outline = said(CHECK, held, file)
    predicted = float(re.search(r"([\d,]+) MB of memory in each worker process", outline)[1].replace(",", ""))
    measured = float(said(RUN, held, file).split()[-1])
    assert measured / FACTOR <= predicted <= measured * FACTOR, f"predicted {predicted:.0f} MB, measured {measured:.0f}"


def said(code: str, held: int, file: Path) -> str:
    command = [sys.executable, "-c", code, str(held), str(file)]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=300).stdout
