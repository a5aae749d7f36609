"""Kill audits at random moments and resume them: every result must be that of the audit nobody disturbed.

    python -m benchmarks.fifty_kills [--kills 50] [--seed 1] [SCENARIO]

In each round a run on two processes is started afresh and SIGKILL is sent at a random moment: in turn to the program, to one of its
workers, and to all of them at once. Then the same command is run with ``--resume`` until it ends by itself. ``results.parquet`` must be
the same bytes as the undisturbed run's, and ``results.json`` the same but for start and duration. Exit status 1 if any is not.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

SCENARIO = Path(__file__).with_name("fifty_kills.yaml")
VICTIMS = ("program", "worker", "program and workers")
MOST_RESUMES = 5
LONGEST = 180.0
"""Seconds after which a run counts as hung."""


@dataclass
class Tally:
    """What became of the rounds."""

    rounds: int = 0
    identical: int = 0
    landed: Counter[str] = field(default_factory=Counter)
    reused: list[int] = field(default_factory=list)
    """Tasks that the resumed run found finished, one figure a round that needed one."""
    different: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        hits = ", ".join(f"{count} × {name}" for name, count in sorted(self.landed.items()))
        reused = f"{min(self.reused)} to {max(self.reused)}" if self.reused else "none"
        return "\n".join([
            f"{self.identical} of {self.rounds} results identical to the undisturbed one",
            f"SIGKILL hit: {hits}; tasks reused by a resumed run: {reused}",
            *self.different,
        ])  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the rounds and print the tally."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("scenario", nargs="?", type=Path, default=SCENARIO)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        tally = kill_and_resume(asked.scenario.resolve(), Path(folder), asked.kills, asked.seed)
    print(tally)
    return int(tally.identical != asked.kills)


def kill_and_resume(scenario: Path, folder: Path, kills: int, seed: int) -> Tally:
    """Return the tally of so many rounds."""
    draw, tally = random.Random(seed), Tally()
    start = time.monotonic()
    wanted = _outcome(_finish(scenario, folder / "undisturbed", ()), folder / "undisturbed" / scenario.stem)
    whole = time.monotonic() - start
    for number in range(kills):
        victim = VICTIMS[number % len(VICTIMS)]
        output = folder / f"round-{number}"
        hit, latest = None, whole
        while hit is None:  # a kill that comes too late is none
            after = draw.uniform(0.0, latest)
            shutil.rmtree(output, ignore_errors=True)
            hit, latest = _disturbed(scenario, output, victim, after, draw), after
        status = _resumed(scenario, output, tally)
        found = _outcome(status, output / scenario.stem)
        tally.rounds += 1
        tally.landed[hit] += 1
        tally.identical += found == wanted and "hung" not in hit
        print(f"round {number}: {hit}: {'identical' if found == wanted else 'DIFFERENT'}", file=sys.stderr, flush=True)
        if found != wanted:
            tally.different.append(f"round {number} ({hit}): " + ", ".join(k for k in wanted if wanted[k] != found.get(k)))
    return tally


def _command(scenario: Path, output: Path, more: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "auditor", "run", str(scenario), "--output", str(output), "--workers", "2", *more]


def _finish(scenario: Path, output: Path, more: Sequence[str]) -> int:
    return subprocess.run(_command(scenario, output, more), capture_output=True, check=False, timeout=LONGEST).returncode


def _resumed(scenario: Path, output: Path, tally: Tally) -> int:
    """Resume until the run ends by itself; return its exit status."""
    for _ in range(MOST_RESUMES):
        done = subprocess.run(_command(scenario, output, ["--resume"]), capture_output=True, text=True, check=False, timeout=LONGEST)
        told = [line for line in done.stderr.splitlines() if "resumed: " in line]
        tally.reused += [int(line.partition("resumed: ")[2].split()[0]) for line in told]
        if done.returncode in (0, 1):
            break
    return done.returncode


def _disturbed(scenario: Path, output: Path, victim: str, after: float, draw: random.Random) -> str | None:
    """Start a run and kill it, or a part of it, after so many seconds; return what was hit, None when the run was done by then."""
    program = subprocess.Popen(
        _command(scenario, output, ()), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        program.wait(after)
        return None
    except subprocess.TimeoutExpired:
        pass
    workers = [pid for pid in _group(program.pid) if pid != program.pid]
    if victim == "worker" and workers:
        os.kill(draw.choice(workers), signal.SIGKILL)
        return victim if _ended(program) else f"{victim}, and the program hung"
    if victim == "program and workers":
        os.killpg(program.pid, signal.SIGKILL)
    program.kill()
    program.wait()
    return victim if workers else "program before it had workers"


def _ended(program: subprocess.Popen[bytes]) -> bool:
    """Wait for the end; kill everything when it does not come."""
    try:
        program.wait(LONGEST)
    except subprocess.TimeoutExpired:
        os.killpg(program.pid, signal.SIGKILL)
        program.wait()
        return False
    return True


def _group(leader: int) -> list[int]:
    """Return the processes of a session that work: not the trackers of resources that joblib and Python start beside them."""
    listed = subprocess.run(["ps", "-o", "pid=,args=", "-g", str(leader)], capture_output=True, text=True, check=False).stdout
    rows = [line.split(maxsplit=1) for line in listed.splitlines()]
    return [int(row[0]) for row in rows if len(row) == 2 and "tracker" not in row[1]]


def _outcome(status: int, folder: Path) -> dict[str, object]:
    """Return everything that must be the same: all but what the clock says."""
    document = json.loads((folder / "results.json").read_text()) if (folder / "results.json").exists() else {}
    for field_ in ("start", "duration"):
        document.get("provenance", {}).pop(field_, None)
    parquet = folder / "results.parquet"
    table = parquet.read_bytes() if parquet.exists() else b""
    return {"exit status": status, "results.json": json.dumps(document), "results.parquet": table}


if __name__ == "__main__":
    sys.exit(main())
