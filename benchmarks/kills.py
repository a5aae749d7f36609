"""Disturb audits at random moments, resume them, compare the results.

    python -m benchmarks.kills [--rounds 100] [--seed 1] [--write docs/evidence/kills.md] [SCENARIO
    ...]

Each round starts a new run on two processes. One of these disturbs it at a random moment, in turn:

- SIGKILL to the program, to one worker, or to all at once;
- SIGTERM, SIGINT (Ctrl-C) or SIGHUP (closed terminal) to the program;
- removal of its output folder;
- an output file system that is too small (a tmpfs, if it can be mounted);
- a second run that writes to the same folder.

A disturbed run must end by itself, without a traceback. Status 0 or 1 requires its results. The
command is then run with ``--resume`` until it ends. ``results.parquet`` must equal the undisturbed
run's in every byte, ``results.json`` except for start and duration. Exit status 1 if a round fails.

Without a scenario, the scenarios in this file's folder alternate: numbers in memory, numbers and
categories in files, attacks that read all of a file, schemes that read record by record
(k-anonymity, rotations, filters), and published copies. All tables of files stay on disk.
"""

from __future__ import annotations

import argparse
import fcntl
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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

SCENARIOS = sorted(Path(__file__).parent.glob("kills_*.yaml"))
RECORDS = 200_000
"""In the file that `kills_categories.yaml` names: four blocks, and so four tasks in a pass."""
NUMBERS = 3_000_000
"""Records of two numbers in the file that `kills_passes.yaml` names, 23 tasks in a pass;
`kills_attempts.yaml` takes a part of them."""
PEOPLE = 4_000
"""Records in the files that `kills_published.yaml` names."""
LEAST_SPAN = 0.5
"""Seconds in which a moment is drawn at least: start and end of a run differ by as much from time
to time."""
MOST_MISSES = 40
"""Moments drawn in one round at most: a run that cannot be hit is a fault, and no reason to go on
for ever."""
MOST_RESUMES = 5
MOST_NARROW = 5
"""Of these, how many within the least span before it is looked elsewhere: what can be disturbed may
be a small part of it."""
LONGEST = 240.0
"""Seconds after which a run counts as hung."""
TOO_EARLY, TOO_LATE = "too early", "too late"


@dataclass
class Run:
    """A running audit, and its end.

    Attributes
    ----------
    status : int or None
        Exit status; None if the run hung, which is a fault.
    faults : list of str
        Forbidden behaviour.
    """

    scenario: Path
    output: Path
    draw: random.Random
    program: subprocess.Popen[str]
    status: int | None = None
    faults: list[str] = field(default_factory=list)

    @classmethod
    def begin(cls, scenario: Path, output: Path, draw: random.Random, *more: str) -> Run:
        """Start the run in its own session."""
        program = subprocess.Popen(
            _command(scenario, output, *more),
            env=_environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        return cls(scenario, output, draw, program)

    def workers(self) -> list[int]:
        """Return its workers, without the resource trackers of joblib and Python."""
        listed = subprocess.run(
            ["ps", "-o", "pid=,args=", "-g", str(self.program.pid)],
            capture_output=True,
            text=True,
            check=False,
        ).stdout
        rows = [line.split(maxsplit=1) for line in listed.splitlines()]
        return [
            int(row[0])
            for row in rows
            if len(row) == 2 and "tracker" not in row[1] and int(row[0]) != self.program.pid
        ]

    def ended(self, *expected: int) -> None:
        """Wait for the end, and note faults.

        A hang, a traceback, a wrong status or missing results.
        """
        try:
            _, told = self.program.communicate(timeout=LONGEST)
        except subprocess.TimeoutExpired:
            os.killpg(self.program.pid, signal.SIGKILL)
            self.program.communicate()
            self.faults.append("hung")
            return
        self.status = self.program.returncode
        if "Traceback" in told:
            self.faults.append("traceback")
        if self.status not in expected:
            self.faults.append(f"status {self.status}")
        if (
            self.status in (0, 1)
            and not (self.output / self.scenario.stem / "results.json").exists()
        ):
            self.faults.append(f"status {self.status} without results")


Disturbance = Callable[[Run], str]
"""Disturbs a run that is under way and waits for its end; returns why it did not, empty if it
did."""


def kill_program(run: Run) -> str:
    """Send SIGKILL to the program; workers must end."""
    run.program.kill()
    run.ended(-signal.SIGKILL)
    return ""


def kill_worker(run: Run) -> str:
    """Send SIGKILL to one worker; its tasks are repeated."""
    workers = run.workers()
    if not workers:
        return kill_all(run)
    os.kill(run.draw.choice(workers), signal.SIGKILL)
    run.ended(0, 1)
    return ""


def kill_all(run: Run) -> str:
    """Send SIGKILL to the program and its workers at once."""
    found, written = run.workers(), (run.output / run.scenario.stem / "results.json").exists()
    os.killpg(run.program.pid, signal.SIGKILL)
    run.program.communicate()
    return "" if found else TOO_LATE if written else TOO_EARLY


def signalled(number: signal.Signals, *expected: int) -> Disturbance:
    """Return a function that sends a signal to the program.

    Before the program sets its handlers, and after it removes these, the system's default ends it.
    That
    is no fault if the folder is still empty or already has the results.
    """

    def disturb(run: Run) -> str:
        run.program.send_signal(number)
        # a signal while results are written waits until all are finished
        run.ended(*expected, -number, 0, 1)
        if run.status != -number or -number in expected:
            return ""
        folder = run.output / run.scenario.stem
        if (folder / "results.json").exists():
            return TOO_LATE
        if not folder.exists():
            return TOO_EARLY
        run.faults.append(f"status {run.status}")
        return ""

    return disturb


def remove_folder(run: Run) -> str:
    """Remove the results folder of a run; it may end with an error."""
    if not run.output.exists():
        run.program.kill()
        run.program.communicate()
        return TOO_EARLY
    written = (run.output / run.scenario.stem / "results.json").exists()
    shutil.rmtree(run.output, ignore_errors=True)
    if written:  # all work is done, so no process can notice
        run.program.communicate(timeout=LONGEST)
        return TOO_LATE
    run.ended(0, 1, 2, 3)
    return ""


def second_writer(run: Run) -> str:
    """Start a second run in the folder of a halted run; it must be refused."""
    os.killpg(run.program.pid, signal.SIGSTOP)
    if not _locked(run.output / run.scenario.stem):
        os.killpg(run.program.pid, signal.SIGKILL)
        run.program.communicate()
        return TOO_EARLY
    other = Run.begin(run.scenario, run.output, run.draw)
    other.ended(2)
    os.killpg(run.program.pid, signal.SIGCONT)
    run.ended(0, 1)
    run.faults += [f"second writer: {fault}" for fault in other.faults]
    return ""


def _locked(folder: Path) -> bool:
    """Whether a run holds the folder's lock."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def let_it_end(run: Run) -> str:
    """Wait: the output file system is too small."""
    run.ended(0, 1, 2, 3)
    return ""


DISTURBANCES: dict[str, Disturbance] = {
    "SIGKILL, program": kill_program,
    "SIGKILL, a worker": kill_worker,
    "SIGKILL, all": kill_all,
    "SIGTERM": signalled(signal.SIGTERM, 143),
    "SIGINT": signalled(signal.SIGINT, 130),
    "SIGHUP": signalled(signal.SIGHUP, -signal.SIGHUP, 129),
    "output folder removed": remove_folder,
    "file system full": let_it_end,
    "second writer": second_writer,
}
KILLS = ("SIGKILL, program", "SIGKILL, a worker", "SIGKILL, all")
FULL = "file system full"


@dataclass
class Tally:
    """Outcomes of the rounds.

    Attributes
    ----------
    rounds, identical : Counter of (str, str)
        Rounds by scenario and disturbance, and rounds without a fault and with equal results.
    reused : list of int
        Finished tasks that resumed runs found.
    faults : list of str
        Each fault, with its round.
    """

    rounds: Counter[tuple[str, str]] = field(default_factory=Counter)
    identical: Counter[tuple[str, str]] = field(default_factory=Counter)
    reused: list[int] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    @property
    def whole(self) -> bool:
        """Whether every round ended without a fault."""
        return self.identical.total() == self.rounds.total()

    def __str__(self) -> str:
        names, kinds = (list(dict.fromkeys(key[place] for key in self.rounds)) for place in (0, 1))
        rows = [["", *names], ["---"] * (len(names) + 1)]
        rows += [[kind, *(self._cell((name, kind)) for name in names)] for kind in kinds]
        reused = f"{min(self.reused)} to {max(self.reused)}" if self.reused else "none"
        return "\n".join(
            [
                *("| " + " | ".join(row) + " |" for row in rows),
                "",
                f"{self.identical.total()} of {self.rounds.total()} rounds without a fault and with the undisturbed run's results. "
                f"Resumed runs found {reused} tasks finished.",
                *self.faults,
            ]
        )

    def _cell(self, key: tuple[str, str]) -> str:
        return f"{self.identical[key]} of {self.rounds[key]}" if self.rounds[key] else "–"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the rounds and print the tally."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("scenarios", metavar="SCENARIO", nargs="*", type=Path)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", type=Path, help="a page to write the counts to")
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        scenarios = [path.resolve() for path in asked.scenarios] or shipped(Path(folder))
        tally = disturb_and_resume(scenarios, Path(folder), asked.rounds, asked.seed)
    print(tally)
    if asked.write is not None:
        asked.write.write_text(
            f"{PAGE.format(command=f'--rounds {asked.rounds} --seed {asked.seed}')}\n{tally}\n",
            encoding="utf-8",
        )
    return int(not tally.whole)


PAGE = """# Runs that were disturbed

By `python -m benchmarks.kills {command} --write docs/evidence/kills.md`. Each round disturbs a run at a random moment, then resumes it;
counts are of rounds in which nothing went wrong and the results were, byte for byte, those of a run that nobody disturbed.
"""


def shipped(folder: Path) -> list[Path]:
    """Copy this folder's scenarios and files; return the scenarios' paths."""
    draw = np.random.default_rng(51)
    salary, disease = (
        np.exp(draw.standard_normal(RECORDS) + 10).round(),
        draw.choice(["cold", "flu", "HIV", "none"], RECORDS),
    )
    pd.DataFrame({"salary": salary, "disease": disease}).to_parquet(
        folder / "people.parquet", row_group_size=49_999
    )
    strong = draw.standard_normal((NUMBERS, 1))
    numbers = pd.DataFrame(strong + draw.standard_normal((NUMBERS, 2)), columns=["first", "second"])
    numbers.to_parquet(folder / "numbers.parquet", row_group_size=99_999)
    original = draw.standard_normal((PEOPLE, 2))
    noise = np.cumsum(np.sqrt([[[0.25]], [[0.75]]]) * draw.standard_normal((2, PEOPLE, 2)), axis=0)
    for name, rows in (
        ("original", original),
        ("copy-1", original + noise[0]),
        ("copy-2", original + noise[1]),
    ):
        pd.DataFrame(rows, columns=["first", "second"]).to_csv(folder / f"{name}.csv", index=False)
    return [Path(shutil.copy(path, folder)) for path in SCENARIOS]


@dataclass(frozen=True)
class Undisturbed:
    """Results of an undisturbed run, its seconds and its bytes."""

    outcome: dict[str, object]
    seconds: float
    size: int

    @classmethod
    def of(cls, scenario: Path, folder: Path) -> Undisturbed:
        """Run a scenario to its end."""
        start = time.monotonic()
        run = Run.begin(scenario, folder, random.Random(0))
        run.ended(0, 1)
        if run.faults:
            raise SystemExit(f"{scenario}: a run that nobody disturbs: {', '.join(run.faults)}")
        written = sum(path.stat().st_size for path in (folder / scenario.stem).iterdir())
        return cls(_outcome(run.status, folder / scenario.stem), time.monotonic() - start, written)


def disturb_and_resume(
    scenarios: Sequence[Path],
    folder: Path,
    rounds: int,
    seed: int,
    kinds: Sequence[str] = tuple(DISTURBANCES),
) -> Tally:
    """Return the tally of all rounds; scenarios and disturbances alternate."""
    draw, tally = random.Random(seed), Tally()
    undisturbed = {
        scenario: Undisturbed.of(scenario, folder / "undisturbed") for scenario in scenarios
    }
    for number in range(rounds):
        kind, scenario = (
            kinds[number % len(kinds)],
            scenarios[number // len(kinds) % len(scenarios)],
        )
        key, output = (scenario.stem.removeprefix("kills_"), kind), folder / f"round-{number}"
        size = draw.randrange(8192, undisturbed[scenario].size) if kind == FULL else None
        with _small(output, size) as mounted:
            if size is not None and not mounted:
                print(f"round {number}: no small file system can be mounted here", file=sys.stderr)
                continue
            run, after = _disturbed(scenario, output, kind, undisturbed[scenario].seconds, draw)
            if mounted:
                subprocess.run(["mount", "-o", "remount,size=1g", str(output)], check=True)
            status = _resumed(scenario, output, tally)
            found = _outcome(status, output / scenario.stem)
        wanted = undisturbed[scenario].outcome
        differs = [f"{name} differs" for name in wanted if wanted[name] != found.get(name)]
        tally.rounds[key] += 1
        tally.identical[key] += not (run.faults or differs)
        told = f"round {number}, {' × '.join(key)} after {after:.1f} s, status {run.status}"
        print(
            f"{told}: {', '.join([*run.faults, *differs]) or 'identical'}",
            file=sys.stderr,
            flush=True,
        )
        if run.faults or differs:
            tally.faults.append(f"- {told}: " + ", ".join([*run.faults, *differs]))
        shutil.rmtree(output, ignore_errors=True)
    return tally


def _disturbed(
    scenario: Path, output: Path, kind: str, seconds: float, draw: random.Random
) -> tuple[Run, float]:
    """Return a disturbed run and its delay.

    Runs hit too early or too late are repeated.
    """
    earliest, latest, narrow = 0.0, seconds, 0
    for _ in range(MOST_MISSES):
        after = 0.0 if kind == FULL else draw.uniform(earliest, max(latest, earliest + LEAST_SPAN))
        for path in output.glob("*"):
            shutil.rmtree(path)
        run = Run.begin(scenario, output, draw)
        try:
            run.program.wait(after)
            missed = TOO_LATE if kind != FULL else ""
        except subprocess.TimeoutExpired:
            missed = DISTURBANCES[kind](run)
        if not missed:
            return run, after
        earliest, latest = (after, latest) if missed == TOO_EARLY else (earliest, after)
        narrow = narrow + 1 if latest - earliest < LEAST_SPAN else 0
        # a run that had hardly begun where others have ended: the pace changed, and these bounds
        # be silent
        if narrow == MOST_NARROW:
            earliest, latest, narrow = 0.0, max(seconds, 2 * after), 0
    run.faults.append(f"never hit in {MOST_MISSES} runs")
    return run, after


@contextmanager
def _small(output: Path, size: int | None) -> Iterator[bool]:
    """Mount a file system of limited size as the output folder, if possible."""
    if size is None:
        yield False
        return
    output.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(output)],
        capture_output=True,
        check=False,
    )
    try:
        yield done.returncode == 0
    finally:
        if done.returncode == 0:
            subprocess.run(["umount", "-l", str(output)], check=False)


def _command(scenario: Path, output: Path, *more: str) -> list[str]:
    program = [sys.executable, "-m", "benchmarks.from_files"]
    return [*program, "run", str(scenario), "--output", str(output), "--workers", "2", *more]


def _environment() -> dict[str, str]:
    """Return variables that run these packages from any folder."""
    return os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}


def _resumed(scenario: Path, output: Path, tally: Tally) -> int | None:
    """Resume until the run ends by itself; return its exit status."""
    for _ in range(MOST_RESUMES):
        command = _command(scenario, output, "--resume")
        done = subprocess.run(
            command,
            env=_environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=LONGEST,
        )
        told = [line for line in done.stderr.splitlines() if "resumed: " in line]
        tally.reused += [int(line.partition("resumed: ")[2].split()[0]) for line in told]
        if done.returncode in (0, 1):
            break
    return done.returncode


def _outcome(status: int | None, folder: Path) -> dict[str, object]:
    """Return everything that must be equal: all but times."""
    document = (
        json.loads((folder / "results.json").read_text())
        if (folder / "results.json").exists()
        else {}
    )
    for field_ in ("start", "duration"):
        document.get("provenance", {}).pop(field_, None)
    parquet = folder / "results.parquet"
    table = parquet.read_bytes() if parquet.exists() else b""
    return {"exit status": status, "results.json": json.dumps(document), "results.parquet": table}


if __name__ == "__main__":
    sys.exit(main())
