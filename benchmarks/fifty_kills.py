"""Kill audits at random moments and resume them: every result must be that of the audit nobody disturbed.

    python -m benchmarks.fifty_kills [--kills 50] [--seed 1] [SCENARIO ...]

In each round a run on two processes is started afresh and SIGKILL is sent at a random moment: in turn to the program, to one of its
workers, and to all of them at once. Then the same command is run with ``--resume`` until it ends by itself. ``results.parquet`` must be
the same bytes as the undisturbed run's, and ``results.json`` the same but for start and duration. Exit status 1 if any is not.

Without a scenario, those beside this file take turns: numbers in memory, categories and numbers that stay in their files, and records that
are gone through one by one. Tables of files stay in them, however small.
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

import numpy as np
import pandas as pd

SCENARIOS = sorted(Path(__file__).parent.glob("fifty_kills_*.yaml"))
RECORDS = 200_000
"""In the file that `fifty_kills_categories.yaml` names: four blocks, and so four tasks in a pass."""
NUMBERS = 3_000_000
"""Records of two numbers in the file that `fifty_kills_passes.yaml` names: 23 tasks in a pass of some seconds."""
VICTIMS = ("program", "worker", "program and workers")
TOO_EARLY, TOO_LATE, HUNG = "no workers yet", "done by then", "worker, and the program hung"
HITS = (*VICTIMS, HUNG)
LEAST_SPAN = 0.5
"""Seconds in which a moment is drawn at least: start and end of a run differ by as much from time to time."""
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
    parts: list[int] = field(default_factory=list)
    """Parts of others that it found."""
    different: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        hits = ", ".join(f"{count} × {name}" for name, count in sorted(self.landed.items()))
        reused = f"{min(self.reused)} to {max(self.reused)}" if self.reused else "none"
        parts = f", and up to {max(self.parts)} parts of others" if any(self.parts) else ""
        return "\n".join([
            f"{self.identical} of {self.rounds} results identical to the undisturbed one",
            f"SIGKILL hit: {hits}; tasks reused by a resumed run: {reused}{parts}",
            *self.different,
        ])  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the rounds and print the tally."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("scenarios", metavar="SCENARIO", nargs="*", type=Path)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        scenarios = [path.resolve() for path in asked.scenarios] or shipped(Path(folder))
        tally = kill_and_resume(scenarios, Path(folder), asked.kills, asked.seed)
    print(tally)
    return int(tally.identical != asked.kills)


def shipped(folder: Path) -> list[Path]:
    """Put the scenarios that come with this file into a folder, with the files that they name; return their paths."""
    draw = np.random.default_rng(51)
    salary, disease = np.exp(draw.standard_normal(RECORDS) + 10).round(), draw.choice(["cold", "flu", "HIV", "none"], RECORDS)
    pd.DataFrame({"salary": salary, "disease": disease}).to_parquet(folder / "people.parquet", row_group_size=49_999)
    strong = draw.standard_normal((NUMBERS, 1))
    numbers = pd.DataFrame(strong + draw.standard_normal((NUMBERS, 2)), columns=["first", "second"])
    numbers.to_parquet(folder / "numbers.parquet", row_group_size=99_999)
    return [Path(shutil.copy(path, folder)) for path in SCENARIOS]


@dataclass(frozen=True)
class Undisturbed:
    """What the run that nobody disturbs came to, and the seconds it took."""

    outcome: dict[str, object]
    seconds: float

    @classmethod
    def of(cls, scenario: Path, folder: Path) -> Undisturbed:
        """Run a scenario to its end."""
        start = time.monotonic()
        status = subprocess.run(
            _command(scenario, folder), env=_environment(), capture_output=True, check=False, timeout=LONGEST
        ).returncode
        if status not in (0, 1):
            raise SystemExit(f"{scenario}: a run that nobody disturbs ends with exit status {status}")
        return cls(_outcome(status, folder / scenario.stem), time.monotonic() - start)


def kill_and_resume(scenarios: Sequence[Path], folder: Path, kills: int, seed: int) -> Tally:
    """Return the tally of so many rounds; each scenario in turn has one of every kind of victim."""
    draw, tally = random.Random(seed), Tally()
    undisturbed = {scenario: Undisturbed.of(scenario, folder / "undisturbed") for scenario in scenarios}
    for number in range(kills):
        victim, scenario = VICTIMS[number % len(VICTIMS)], scenarios[number // len(VICTIMS) % len(scenarios)]
        wanted = undisturbed[scenario].outcome
        output = folder / f"round-{number}"
        hit, earliest, latest = "", 0.0, undisturbed[scenario].seconds
        while hit not in HITS:  # a kill that comes too early or too late is none
            after = draw.uniform(earliest, max(latest, earliest + LEAST_SPAN))
            shutil.rmtree(output, ignore_errors=True)
            hit = _disturbed(scenario, output, victim, after, draw)
            earliest, latest = (after, latest) if hit == TOO_EARLY else (earliest, after)
        status = _resumed(scenario, output, tally)
        found = _outcome(status, output / scenario.stem)
        tally.rounds += 1
        tally.landed[hit] += 1
        tally.identical += found == wanted and hit != HUNG
        told = f"round {number}, {scenario.stem}, {hit} after {after:.1f} s"
        print(f"{told}: {'identical' if found == wanted else 'DIFFERENT'}", file=sys.stderr, flush=True)
        if found != wanted:
            tally.different.append(f"{told}: " + ", ".join(k for k in wanted if wanted[k] != found.get(k)))
        shutil.rmtree(output)
    return tally


def _command(scenario: Path, output: Path, *more: str) -> list[str]:
    program = [sys.executable, "-m", "benchmarks.from_files"]
    return [*program, "run", str(scenario), "--output", str(output), "--workers", "2", *more]


def _environment() -> dict[str, str]:
    """Return what runs these packages, whatever the current folder is and whichever of them are installed."""
    return os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}


def _resumed(scenario: Path, output: Path, tally: Tally) -> int:
    """Resume until the run ends by itself; return its exit status."""
    for _ in range(MOST_RESUMES):
        command = _command(scenario, output, "--resume")
        done = subprocess.run(command, env=_environment(), capture_output=True, text=True, check=False, timeout=LONGEST)
        told = [line for line in done.stderr.splitlines() if "resumed: " in line]
        tally.reused += [int(line.partition("resumed: ")[2].split()[0]) for line in told]
        tally.parts += [int(line.partition(" finished already, and ")[2].split()[0]) for line in told if " finished already, and " in line]
        if done.returncode in (0, 1):
            break
    return done.returncode


def _disturbed(scenario: Path, output: Path, victim: str, after: float, draw: random.Random) -> str:
    """Start a run and kill it, or a part of it, after so many seconds; return what was hit, or why nothing was."""
    program = subprocess.Popen(
        _command(scenario, output), env=_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        program.wait(after)
        return TOO_LATE
    except subprocess.TimeoutExpired:
        pass
    workers = [pid for pid in _group(program.pid) if pid != program.pid]
    if victim == "worker" and workers:
        os.kill(draw.choice(workers), signal.SIGKILL)
        return victim if _ended(program) else HUNG
    if victim == "program":
        program.kill()
    else:
        os.killpg(program.pid, signal.SIGKILL)
    program.wait()
    return victim if victim == "program" or workers else TOO_EARLY


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
