"""Share left at recommended levels: `python -m benchmarks.advice_left --write docs/evidence/advice.md`.

`--rows 2000` takes more rows, `--only cps` one table, and `--save FILE` keeps finished tables for
the next run. The tables of `benchmarks.strongest`, sorted by their first column or shuffled, and
for three sorted tables the advice from earlier attacks alone."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd

import auditor
from auditor import registry
from auditor.runs.advice import advise
from auditor.runs.advice.audits import Asked, Trials
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
scripts from outside: moving averages of {", ".join(map(str, WINDOWS))} rows, the {LINES} strongest spectral lines of the copy, and local
levels (random walks) of its principal components.
Every column is requested by name: without `--columns`, advice leaves out numbers with few different values, all columns of wisconsin
among them. Level *none*: advice refuses, for the reason below the table.

{HEADER}
"""
COMPARISON = f"""
Advice on sorted tables from earlier attacks alone ({", ".join(EARLIER)}), and what all attacks leave at its level:

{HEADER}"""


def least(frame: pd.DataFrame, level: float, seed: int) -> tuple[float, str]:
    """Return the least share of an attribute, and the attack, in one fresh release."""
    release, X = auditor.perturb(frame, SCHEME, [level], seed=seed), frame.to_numpy()
    K_Z = level * np.atleast_2d(np.cov(X.T, bias=True))
    estimates = from_outside(np.asarray(release.copies[0]), K_Z)
    for name in ATTACKS:
        with suppress(auditor.NotApplicable):
            estimates[name] = np.asarray(auditor.attack(name, release, original=frame).values)
    return min(
        (float((((values - X) ** 2).mean(axis=0) / X.var(axis=0)).min()), name)
        for name, values in estimates.items()
    )


def advised(frame: pd.DataFrame, attacks: tuple[str, ...] = ()) -> float | str:
    """Return the recommended level, or the refusal, by all or the given attacks.

    Skip the audits after the recommendation, which only explain it.
    """
    frame.to_csv("table.csv", index=False)
    scenario = Asked.scenario

    def some(*args: object, **kwargs: object) -> dict[str, object]:
        made = scenario(*args, **kwargs)  # type: ignore[arg-type]
        return made | ({"attacks": list(attacks)} if attacks else {})

    request = Request("table.csv", 1, TARGET, schemes=(SCHEME,), columns=tuple(frame.columns))
    try:
        with (
            mock.patch.object(Asked, "scenario", some),
            mock.patch.object(Trials, "draw_out"),
            mock.patch.object(advise, "shuffled_note", return_value=None),
            mock.patch.object(advise, "steps_apart", return_value=None),
        ):
            return float(advise.advise(request).chosen.levels[0])
    except auditor.AuditorError as refusal:
        return str(refusal)


def line(name: str, order: str, frame: pd.DataFrame, level: float | str, releases: int) -> str:
    """Return a row of the page."""
    start = f"| {name} | {order} | {len(frame):,} |"
    if isinstance(level, str):
        return f"{start} none | 0 | – | – | – |"
    found = [least(frame, level, 2**40 + 100 + k) for k in range(releases)]
    share, attack = min(found)
    below = sum(each < TARGET for each, _ in found)
    return f"{start} {level:.3g} | {releases} | {share:.3f} | {attack} | {below} |"


def measured(name: str, frame: pd.DataFrame, releases: int) -> dict[str, list[str]]:
    """Return rows, refusals and rows by earlier attacks of one table."""
    found: dict[str, list[str]] = {"lines": [], "refusals": [], "earlier": []}
    orders = {
        "by the first column": frame.sort_values(frame.columns[0], kind="stable"),
        "shuffled": frame.sample(frac=1.0, random_state=0),
    }
    for order, each in orders.items():
        each = each.reset_index(drop=True)
        level = advised(each)
        found["lines"].append(line(name, order, each, level, releases))
        if isinstance(level, str):
            found["refusals"].append(f"- {name}, {order}: {level}.")
    if name in COMPARED:
        each = orders["by the first column"].reset_index(drop=True)
        level = advised(each, EARLIER)
        found["earlier"].append(line(name, "by the first column", each, level, releases))
    return found


def key(name: str, asked: argparse.Namespace) -> str:
    """Return the name under which a finished table is kept."""
    return f"{name}, {asked.rows} rows, {asked.releases} releases"


def main() -> None:
    """Measure, and write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--releases", type=int, default=10)
    parser.add_argument("--only", default="", help="names of tables, with commas")
    parser.add_argument("--package-files", type=Path)
    for option in ("--write", "--save"):
        parser.add_argument(option, type=Path)
    asked = parser.parse_args()
    registry.discover(*registry.AUDITING)
    page, save = (path and path.resolve() for path in (asked.write, asked.save))
    done = json.loads(save.read_text()) if save and save.exists() else {}
    found = [
        (name, frame.head(asked.rows))
        for name, frame in tables(asked.package_files)
        if name in (asked.only.split(",") if asked.only else [name])
    ]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, frame in found:
            if key(name, asked) not in done:
                started = time.process_time()
                done[key(name, asked)] = measured(name, frame, asked.releases)
                if save:
                    save.write_text(json.dumps(done, indent=1), encoding="utf-8")
                print(
                    f"{name}: {time.process_time() - started:.0f} s",
                    *done[key(name, asked)].values(),
                )
                sys.stdout.flush()
        os.chdir("/")
    if page:
        lines, refusals, earlier = (
            [text for name, _ in found for text in done[key(name, asked)][part]]
            for part in ("lines", "refusals", "earlier")
        )
        some = f"advice_left --rows {asked.rows}" + (f" --only {asked.only}" if asked.only else "")
        head = INTRODUCTION.replace("advice_left", some, 1)
        text = "\n".join([*lines, *([""] if refusals else []), *refusals, COMPARISON, *earlier])
        page.write_text(f"{head}{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
