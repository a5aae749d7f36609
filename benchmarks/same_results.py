"""Whether two commits find the same: `python -m benchmarks.same_results OLD_COMMIT [SCENARIO …] [--write PAGE]`.

Every scenario that ships with both is run by the code of the old commit and by the code that stands here, each in a process of its own
and from the old commit's file, and the figures are compared one by one. `--results FOLDER` keeps what was found, and a later run goes on
from there. All of them take some fifteen processor minutes. Exit status 1 if a figure differs, or one is gone.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from auditor.results.measurements import NUMBERS
from auditor.results.metrics import base
from auditor.results.model import AuditResult
from benchmarks import FOLDER

ROOT = FOLDER.parent
WITHIN = 1e-9
"""Rounding: relative to the largest of the figures that a scheme's releases have of one metric, as a pooled error may well be 0."""
INTRODUCTION = """\
# The same results

<!-- Written by `python -m benchmarks.same_results {commit} --write PAGE`; do not edit. -->

What the code of {commit} finds in each scenario that it ships, beside what {now} finds in the same file. Figures are the same where value,
standard error, interval and theory are, to a relative {within:g}; seconds are left out. The largest difference is that of a value, in
standard errors where it has one.

| scenario | figures | differ | largest difference | where | new | gone | verdicts that changed |
| --- | ---: | ---: | ---: | --- | ---: | ---: | --- |
"""

Figure = tuple[float | None, ...]
"""Value, standard error, both ends of the interval and theory; of a histogram its shares."""


class Compared(NamedTuple):
    """What became of one scenario's figures; ``largest`` is in standard errors, or ``relative`` where the figure has none."""

    figures: int
    differ: int
    largest: float
    relative: bool
    where: str
    new: int
    gone: int
    verdicts: str

    @property
    def same(self) -> bool:
        return not (self.differ or self.gone or self.verdicts)

    def row(self) -> str:
        told = "" if not self.largest else f"{self.largest:.2g}" + ("" if self.relative else " s.e.")
        counts = f"{self.figures:,} | {self.differ or 'same'} | {told} | {self.where}"
        return f"{counts} | {self.new or ''} | {self.gone or ''} | {self.verdicts}"


def compared(old: AuditResult, new: AuditResult) -> Compared:
    """Return what differs, figure by figure; figures are matched by their place in the audit."""
    before, after = (dict(figures(result)) for result in (old, new))
    shared = before.keys() & after.keys()
    sizes: Counter[tuple[str, ...]] = Counter()
    for key in shared:
        sizes[key[:4]] = max(sizes[key[:4]], *(abs(x or 0.0) for x in (*before[key], *after[key])))
    differing = [key for key in shared if not same(before[key], after[key], sizes[key[:4]])]
    largest, relative, where = max((difference(before[key], after[key], key) for key in differing), default=(0.0, False, ""))
    said, now = (Counter((e.expectation, json.dumps(e.where, sort_keys=True), e.status) for e in each.expectations) for each in (old, new))
    verdicts = "; ".join(f"{what}: no longer {status}" for what, _, status in (said - now).elements())
    return Compared(len(shared), len(differing), largest, relative, where, len(after) - len(shared), len(before) - len(shared), verdicts)


def figures(result: AuditResult) -> Iterator[tuple[tuple[str, ...], Figure]]:
    """Yield each figure by what it is of: sweep point, scheme, metric and attribute first."""
    for r in result.measurements:
        if base(r.metric) != "seconds":
            where = r.sweep, r.scheme, r.metric, r.attribute, r.knowledge, r.attack, r.coalition, r.replicate, r.status
            yield tuple(map(str, where)), tuple(getattr(r, number) for number in NUMBERS)
    for d in result.distributions:
        where = d.sweep, d.scheme, "distribution", d.attribute, d.knowledge, d.attack, d.coalition, d.replicate
        yield tuple(map(str, where)), (*d.shares, d.above, *d.edges)


def same(old: Figure, new: Figure, size: float) -> bool:
    known = [(x is None, x or 0.0) for x in old], [(x is None, x or 0.0) for x in new]
    return len(old) == len(new) and all(a == b and abs(x - y) <= WITHIN * size for (a, x), (b, y) in zip(*known, strict=True))


def difference(old: Figure, new: Figure, key: tuple[str, ...]) -> tuple[float, bool, str]:
    """Return how far two values are apart, in standard errors or else relative to the old one, and where; ordered by that."""
    where = ", ".join(part for part in (key[1], *key[5:7], key[2], key[3]) if part != "None")
    (a, b), error = (old[0], new[0]), old[1] if key[2] != "distribution" else None
    if a is None or b is None:
        return math.inf, True, where
    return (abs(b - a) / error, False, where) if error else (abs(b - a) / (abs(a) or 1.0), True, where)


def run(scenario: Path, code: Path, out: Path) -> str:
    """Run one scenario by the code in a folder, unless its results are there; return why there are none, if so."""
    found = out / scenario.stem / "results.json"
    if found.exists():
        return ""
    environment = os.environ | {"PYTHONPATH": str(code), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "auditor.cli", "run", str(scenario), "--quiet", "--output", str(out)]
    done = subprocess.run(command, cwd=code, env=environment, capture_output=True, text=True, check=False)
    return "" if found.exists() else f"{code.name} has no results: {done.stderr.strip().splitlines()[-1:]}"


def installed(tree: Path) -> Path:
    """Install a checkout into a folder beside it, with the entry points of its commit; return the folder."""
    folder = tree.with_name("installed")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--target", str(folder), str(tree)]
    subprocess.run(command, check=True)
    return folder


def git(*arguments: Any) -> str:
    return subprocess.run(["git", "-C", str(ROOT), *map(str, arguments)], check=True, capture_output=True, text=True).stdout.strip()


def main(arguments: list[str]) -> int:
    """Run both, print a line for each scenario, and write the page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("commit")
    parser.add_argument("scenarios", nargs="*", help="names; all that both commits ship")
    parser.add_argument("--results", type=Path, help="where results are kept, and taken from")
    parser.add_argument("--write", type=Path, help="the page to write")
    given = parser.parse_args(arguments)
    lines, fine = [], True
    with tempfile.TemporaryDirectory() as name:
        tree, kept = Path(name) / "old", (given.results or Path(name) / "results").resolve()
        git("worktree", "add", "--detach", tree, given.commit)
        try:
            old = installed(tree)
            for scenario in sorted((tree / "scenarios").glob("*.yaml")):
                if (ROOT / "scenarios" / scenario.name).exists() and (not given.scenarios or scenario.stem in given.scenarios):
                    why = run(scenario, old, kept / "old") or run(scenario, ROOT, kept / "new")
                    results = [] if why else [AuditResult.load(kept / side / scenario.stem) for side in ("old", "new")]
                    found = compared(*results) if results else None
                    lines.append(f"| `{scenario.stem}` | {found.row() if found else why} |")
                    fine &= found is not None and found.same
                    print(lines[-1], flush=True)
        finally:
            git("worktree", "remove", "--force", tree)
    if given.write:
        text = INTRODUCTION.format(commit=git("rev-parse", "--short", given.commit), now=git("rev-parse", "--short", "HEAD"), within=WITHIN)
        given.write.write_text(text + "\n".join(lines) + "\n")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
