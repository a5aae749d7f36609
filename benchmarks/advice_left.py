"""Share left at recommended levels: `python -m benchmarks.advice_left --write docs/evidence/advice.md`.

`--rows 2000` takes more rows, `--only cps` one table. The tables of `benchmarks.strongest`, sorted
by their first column or shuffled, and for some the advice from earlier attacks alone."""

from __future__ import annotations

import argparse
import os
import tempfile
from contextlib import nullcontext
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd

import auditor
from auditor import registry
from auditor.runs.advice.advise import advise
from auditor.runs.advice.audits import Asked
from auditor.runs.advice.columns import Request
from benchmarks.strongest import ATTACKS, LINES, WINDOWS, from_outside, tables

TARGET, SCHEME = 0.5, "corner-wave"
EARLIER, COMPARED = ATTACKS[:5], ("economics", "elnino", "cps")
"""Attacks before neighbour-mixture, and tables of the comparison."""
HEADER = """\
| table | order | rows | level | releases | least share | attack | releases below the target |
| --- | --- | --: | --: | --: | --: | --- | --: |"""
INTRODUCTION = f"""\
# Share left at recommended levels

<!-- Written by `python -m benchmarks.advice_left`; do not edit. -->

Advice for one {SCHEME} copy that leaves {TARGET:.0%} of every attribute unknown, then fresh releases at the recommended level:
the least share that any attack leaves of any attribute, over the releases. Besides the attacks of `benchmarks.strongest` these are
scripts from outside: moving averages of {", ".join(map(str, WINDOWS))} rows, and the {LINES} strongest spectral lines of the copy.
Level *none*: advice refuses, as no level of its grid, up to 1,000, meets the target.

{HEADER}
"""
COMPARISON = f"""
Advice from earlier attacks alone ({", ".join(EARLIER)}), and what all attacks leave at its level:

{HEADER}"""


def least(frame: pd.DataFrame, level: float, seed: int) -> tuple[float, str]:
    """Return the least share of an attribute, and the attack, in one fresh release."""
    release, X = auditor.perturb(frame, SCHEME, [level], seed=seed), frame.to_numpy()
    estimates = from_outside(np.asarray(release.copies[0]))
    for name in ATTACKS:
        estimates[name] = np.asarray(auditor.attack(name, release, original=frame).values)
    return min(
        (float((((values - X) ** 2).mean(axis=0) / X.var(axis=0)).min()), name)
        for name, values in estimates.items()
    )


def advised(frame: pd.DataFrame, attacks: tuple[str, ...] = ()) -> float | None:
    """Return the recommended level, measured against all or some attacks; None if refused."""
    frame.to_csv("table.csv", index=False)
    scenario = Asked.scenario

    def some(*args: object, **kwargs: object) -> dict[str, object]:
        made = scenario(*args, **kwargs)  # type: ignore[arg-type]
        return made | ({"attacks": list(attacks)} if made["attacks"] == "all" else {})

    try:
        with mock.patch.object(Asked, "scenario", some) if attacks else nullcontext():
            return float(
                advise(Request("table.csv", 1, TARGET, schemes=(SCHEME,))).chosen.levels[0]
            )
    except auditor.AuditorError:
        return None


def line(name: str, order: str, frame: pd.DataFrame, level: float | None, releases: int) -> str:
    """Return a row of the page."""
    start = f"| {name} | {order} | {len(frame):,} |"
    if level is None:
        return f"{start} none | 0 | – | – | – |"
    found = [least(frame, level, 2**40 + 100 + k) for k in range(releases)]
    share, attack = min(found)
    below = sum(each < TARGET for each, _ in found)
    return f"{start} {level:.3g} | {releases} | {share:.3f} | {attack} | {below} |"


def main() -> None:
    """Measure, and write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--rows", type=int, default=800)
    parser.add_argument("--releases", type=int, default=10)
    parser.add_argument("--only", default="", help="names of tables, with commas")
    parser.add_argument("--package-files", type=Path)
    parser.add_argument("--write", type=Path)
    asked = parser.parse_args()
    registry.discover(*registry.AUDITING)
    page = asked.write.resolve() if asked.write else None
    found = [
        (name, frame.head(asked.rows))
        for name, frame in tables(asked.package_files)
        if name in (asked.only.split(",") if asked.only else [name])
    ]
    lines, earlier = list[str](), list[str]()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, frame in found:
            orders = {
                "by the first column": frame.sort_values(frame.columns[0], kind="stable"),
                "shuffled": frame.sample(frac=1.0, random_state=0),
            }
            for order, each in orders.items():
                each = each.reset_index(drop=True)
                lines.append(line(name, order, each, advised(each), asked.releases))
                print(lines[-1], flush=True)
                if name in COMPARED:
                    earlier.append(line(name, order, each, advised(each, EARLIER), asked.releases))
                    print(earlier[-1], flush=True)
        os.chdir("/")
    if page:
        some = f"advice_left --rows {asked.rows}" + (f" --only {asked.only}" if asked.only else "")
        head = INTRODUCTION.replace("advice_left", some, 1)
        page.write_text(head + "\n".join([*lines, COMPARISON, *earlier]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
