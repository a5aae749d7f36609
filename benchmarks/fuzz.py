"""Mutate scenarios and tables, and judge the program's responses.

    python -m benchmarks.fuzz [--scenarios 10000] [--tables 5000] [--seed 1] [--processes 1]
    [--write docs/evidence/fuzz.md]

No response may show a traceback, a flood of text or a cell of a table. Each case is a folder with
one user's command: `auditor check`, then `auditor run` for a share of the small valid scenarios, or
`auditor perturb`. A case is a function of seed and number: ``--only tables:137`` repeats one.
Faults are printed with the smallest file that shows them. These files are added to
tests/fuzz_corpus, which the tests run. Exit status 1 after a fault.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NoReturn

from benchmarks.fuzzing import scenarios, tables
from benchmarks.fuzzing.judge import LONGEST_RUN, Case, judged

MUTATED = {"scenarios": scenarios.mutated, "tables": tables.mutated}
CHUNK = 250
"""Cases of one process: one that dies is known to have died within so few."""
MEMORY = 4 * 2**30
"""Bytes that a process may have beyond what it has with everything imported."""
MOST_TRIES = 200
"""Cases that are tried to make one that shows a fault smaller."""


@dataclass
class Tally:
    """Outcomes of the cases."""

    outcomes: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    seconds: float = 0.0
    longest: float = 0.0

    @property
    def cases(self) -> int:
        return sum(self.outcomes.values())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all cases, print their outcomes, and keep files that show a fault."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--scenarios", type=int, default=10_000)
    parser.add_argument("--tables", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--write", type=Path, metavar="PAGE")
    parser.add_argument(
        "--only",
        metavar="WHAT:FIRST[:STOP]",
        help="these cases only, in this process, one line of JSON each",
    )
    asked = parser.parse_args(arguments)
    if asked.only:
        _only(asked.only, asked.seed)
    start, tally = time.monotonic(), Tally()
    counts = {what: getattr(asked, what) for what in MUTATED}
    chunks = [
        f"{what}:{first}:{min(first + CHUNK, count)}"
        for what, count in counts.items()
        for first in range(0, count, CHUNK)
    ]
    with ThreadPoolExecutor(asked.processes) as crew:
        for lines in crew.map(lambda chunk: _carried_out(chunk, asked.seed), chunks):
            for line in lines:
                _count(line, tally, asked.seed)
            print(
                f"{tally.cases:,} cases, {len(tally.faults)} faults, {time.monotonic() - start:.0f} s",
                file=sys.stderr,
                flush=True,
            )
    page = _page(tally, asked, time.monotonic() - start)
    print(page)
    if asked.write:
        asked.write.write_text(page, encoding="utf-8")
    return int(bool(tally.faults))


def case(what: str, seed: int, number: int) -> Case:
    """Return one case, a function of seed and number."""
    return MUTATED[what](random.Random(f"{seed}-{what}-{number}"))


def _only(asked: str, seed: int) -> NoReturn:
    """Run some cases here, within memory limits, and end the process."""
    what, first, *stop = asked.split(":")
    judged(scenarios.case("warm", (scenarios.CORPUS / "shapes" / "small.yaml").read_bytes()))
    _bound_memory()
    for number in range(int(first), int(stop[0]) if stop else int(first) + 1):
        found = case(what, seed, number)
        verdict = judged(found)
        line = {
            "what": what,
            "number": number,
            "kind": found.kind,
            "outcome": verdict.outcome,
            "faults": verdict.faults,
        }
        print(json.dumps(line | {"seconds": round(verdict.seconds, 4)}), flush=True)
    # As the program exits with threads left: the end of compiled libraries is not part of a case.
    os._exit(0)


def _bound_memory() -> None:
    held = next(
        line
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines()
        if line.startswith("VmSize")
    )
    most = int(held.split()[1]) * 1024 + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _carried_out(chunk: str, seed: int) -> list[dict[str, object]]:
    """Return outcomes from a separate process.

    Its death is a fault, and another process continues.
    """
    what, first, stop = chunk.split(":")
    command = [sys.executable, "-m", "benchmarks.fuzz", "--seed", str(seed), "--only", chunk]
    # and not the current folder: an alarm may have left that where a case was tried smaller
    here = Path(__file__).parents[1]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=here)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode == 0:
        return lines
    died = int(first) + len(lines)
    told = {
        "what": what,
        "number": died,
        "kind": case(what, seed, died).kind,
        "outcome": "died",
        "seconds": 0.0,
    }
    lines.append(
        told | {"faults": [f"the process ended with {done.returncode}: {done.stderr[-300:]}"]}
    )
    return lines + (_carried_out(f"{what}:{died + 1}:{stop}", seed) if died + 1 < int(stop) else [])


def _count(line: dict[str, object], tally: Tally, seed: int) -> None:
    what, seconds = str(line["what"]), float(str(line["seconds"]))
    tally.outcomes[what, str(line["kind"]), str(line["outcome"])] += 1
    tally.seconds, tally.longest = tally.seconds + seconds, max(tally.longest, seconds)
    if line["faults"]:
        told = f"{what}:{line['number']} ({line['kind']}): {line['faults']}"
        tally.faults.append(told)
        kept = (
            keep(smaller(case(what, seed, int(str(line["number"])))), what)
            if line["outcome"] != "died"
            else ""
        )
        print(f"FAULT {told}\n  {kept}", flush=True)


def smaller(case: Case) -> Case:
    """Return the case with the smallest file that shows this fault."""
    name = (
        "s.yaml" if "t.csv" in case.files and "t.parquet" in case.files else next(iter(case.files))
    )
    shown = _kinds(case)
    if not shown or name.endswith(".parquet"):
        return case
    tries, parts = MOST_TRIES, 2
    lines = case.files[name].splitlines(keepends=True)
    while parts <= 2 * len(lines) and tries > 0:
        step = max(1, len(lines) // parts)
        for start in range(0, len(lines), step):
            tries -= 1
            fewer = lines[:start] + lines[start + step :]
            candidate = replace(case, files={**case.files, name: b"".join(fewer)})
            if fewer and _kinds(candidate) & shown:
                lines, case, parts = fewer, candidate, max(2, parts - 1)
                break
        else:
            parts *= 2
    return case


def _kinds(case: Case) -> set[str]:
    return {fault[:20] for fault in judged(case).faults}


def keep(case: Case, what: str) -> Path:
    """Add a case's mutated file to the corpus; return its path."""
    name = "s.yaml" if what == "scenarios" else next(iter(case.files))
    content = case.files[name]
    path = (
        scenarios.CORPUS / what / f"{hashlib.sha256(content).hexdigest()[:12]}{Path(name).suffix}"
    )
    path.write_bytes(content)
    return path


def corpus() -> Iterator[tuple[str, Case]]:
    """Yield the corpus: scenarios, and tables in their most different uses."""
    for path in sorted((scenarios.CORPUS / "scenarios").iterdir()):
        yield (
            path.name,
            scenarios.case("corpus", path.read_bytes(), run=path.name.startswith("run-")),
        )
    for path in sorted((scenarios.CORPUS / "tables").iterdir()):
        for way in ("numbers", "some numbers", "words", "copy", "perturbed"):
            name, run = f"t{path.suffix}", path.name.startswith("run-")
            yield f"{path.name} ({way})", tables.asked("corpus", name, path.read_bytes(), way, run)


def _page(tally: Tally, asked: argparse.Namespace, seconds: float) -> str:
    """Return the counts as Markdown."""
    lines = [
        "# Fuzz: mutated scenarios and tables",
        "",
        f"`python -m benchmarks.fuzz --scenarios {asked.scenarios} --tables {asked.tables} --seed {asked.seed}` writes this page.",
        "Each case is carried out as a user would. It is a fault if anything ends but in a known exit status, shows a traceback or a",
        "library's warning, floods (more than a hundred messages, or one beyond its bound), takes "
        f"{LONGEST_RUN} s of processor time, ends well",
        "without results, or puts a cell of the table into a message or a file of results. The same command judges the same cases again.",
        "",
        f"{tally.cases:,} cases, {len(tally.faults)} faults; {tally.seconds:,.0f} s of processor time "
        f"({1000 * tally.seconds / max(1, tally.cases):.0f} ms a case, the longest {tally.longest:.1f} s), {seconds:,.0f} s on the clock.",
    ]
    for what in MUTATED:
        words = sorted({outcome for which, _, outcome in tally.outcomes if which == what})
        kinds = sorted({kind for which, kind, _ in tally.outcomes if which == what})
        lines += [
            "",
            f"## Mutated {what}",
            "",
            f"| mutation | {' | '.join(words)} |",
            f"| --- |{' ---: |' * len(words)}",
        ]
        lines += [
            f"| {kind} | {' | '.join(str(tally.outcomes[what, kind, word]) for word in words)} |"
            for kind in kinds
        ]
        sums = [sum(tally.outcomes[what, kind, word] for kind in kinds) for word in words]
        lines.append(f"| **all** | {' | '.join(f'**{figure}**' for figure in sums)} |")
    return "\n".join(
        [
            *lines,
            *(
                ["", "## Faults", ""] + [f"- {fault}" for fault in tally.faults]
                if tally.faults
                else []
            ),
            "",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
