"""Agreement of audits with advice.

`python -m benchmarks.advice [--save lines.json] [--write docs/evidence/calibration-advice.md]`. For
each file, scheme and target the recommended release and the next weaker one are audited with other
seeds: one release per audit, and the scenario of the advice, which draws ten releases. `--only
"staff corner-wave"` measures a part.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import auditor
from auditor.data.sources.built_in import Cps
from auditor.results.records import Tried
from auditor.runs.advice.advise import advise
from auditor.runs.advice.columns import Request

SEEDS = {"one release": range(101, 121), "all draws": range(101, 106)}
"""Of audits of one release and of the scenario that advice hands out, of ten draws or more: these
take longer and are surer."""
SCHEMES: dict[str, dict[str, Any]] = {
    "corner-wave": {},
    "uniform-multilevel": {"columns": ("department",)},
    "correlated": {},
    "laplace-multilevel": {},
}
COPIES = 2
HEAD = (
    "file",
    "scheme",
    "unknown",
    "records",
    "levels",
    "loss",
    "loss on average",
    *SEEDS,
    "weaker",
    *SEEDS,
)
INTRODUCTION = f"""\
# Whether audits agree with advice

<!-- Written by `python -m benchmarks.advice --write docs/evidence/calibration-advice.md`; do not edit. -->

A release recommended by `auditor advise` shall meet the target in an audit of any draw, and the next weaker release that it names
shall fail. Both are made and audited here with other seeds: {len(SEEDS["one release"])} audits of one release, and
{len(SEEDS["all draws"])} by the scenario of the advice, which has ten draws or more. The table counts audits in which `exposure`
*holds · is undecided · fails*.
*loss* is how much the standard error of a mean (of categories: of a share) grows, averaged over the {COPIES} copies; *on average* is it
if the mean over draws meets the target and about every other release misses it. The difference is the price of being sure,
and grows as records become fewer.

Files: *staff*, made (salary with blanks, age; department for the scheme of categories); *cps*, age, salary and household size of household
heads of the Current Population Survey.

"""


def staff(rows: int) -> pd.DataFrame:
    """Return a typical staff file.

    It has an identifier, names, dates, blanks, and long-tailed salaries that increase with age.
    """
    rng = np.random.default_rng(17)
    age = rng.integers(20, 66, rows)
    hired = pd.to_datetime("2024-01-01") - pd.to_timedelta(
        rng.integers(0, 365 * (age - 18)), unit="D"
    )
    salary = pd.Series(np.round(np.exp(rng.normal(10.6, 0.35, rows) + 0.01 * (age - 40)), 2)).where(
        rng.random(rows) > 0.08
    )
    return pd.DataFrame(
        {
            "employee_id": np.arange(10_001, 10_001 + rows),
            "name": [f"name {k}" for k in rng.permutation(rows)],
            "hired": hired.strftime("%Y-%m-%d"),
            "salary": salary,
            "age": age,
            "department": rng.choice(list("abcdef"), rows, p=[0.3, 0.2, 0.1, 0.2, 0.1, 0.1]),
        }
    )


def files() -> dict[str, pd.DataFrame]:
    """Return the tables by name."""
    cps = (
        Cps(Cps.Parameters())
        .frame(40_000, np.random.default_rng(0))[["age", "salary", "household_size"]]
        .sample(3_000, random_state=1)
    )
    return {
        "staff-5000": staff(5_000),
        "staff-1600": staff(1_600),
        "cps-3000": cps.rename(columns={"household_size": "department"}),
    }


def verdicts(scenario: dict[str, Any], release: Tried, audits: str) -> str:
    """Return the numbers of audits that hold, are undecided and fail."""
    scheme = scenario["schemes"][0] | {"levels": list(release.levels)}
    audited = scenario | {
        "schemes": [scheme],
        **({"replicates": 1} if audits == "one release" else {}),
    }
    found = Counter(
        auditor.run(audited | {"seed": seed}).expectations[0].status for seed in SEEDS[audits]
    )
    return " · ".join(str(found[verdict]) for verdict in ("holds", "undecided", "fails"))


def line(name: str, scheme: str, unknown: float) -> list[str]:
    """Return one case as a row of the table."""
    advice = advise(
        Request(
            f"{name}.csv",
            COPIES,
            unknown,
            schemes=(scheme,),
            **({"columns": ("age", "salary")} | SCHEMES[scheme]),
        )
    )
    told = [name, scheme, f"{unknown:g}", f"{advice.rows:,}"]
    for release in (advice.chosen, advice.weaker):
        if release is None:
            return [*told, "none fails", "–", "–"]
        loss = (
            [f"+{release.loss:.0%}", f"+{advice.loss_on_average:.0%}"]
            if release is advice.chosen
            else []
        )
        levels = ", ".join(f"{level:g}" for level in release.levels)
        told += [levels, *loss, *(verdicts(advice.scenario, release, audits) for audits in SEEDS)]
    return told


def main(arguments: list[str]) -> int:
    """Measure the cases missing from ``--save``, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--only", default="", help="part of «file scheme unknown», as «staff-5000 corner-wave»"
    )
    parser.add_argument(
        "--save", type=Path, help="where measured lines are kept as JSON, and taken from"
    )
    parser.add_argument("--write", type=Path, help="the page to write")
    options = parser.parse_args(arguments)
    save = options.save.resolve() if options.save else None
    page = options.write.resolve() if options.write else None
    known: dict[str, list[str]] = (
        json.loads(save.read_text(encoding="utf-8")) if save and save.exists() else {}
    )
    tables = files()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, table in tables.items():
            table.to_csv(f"{name}.csv", index=False)
        for case in [
            (name, scheme, unknown)
            for scheme in SCHEMES
            for unknown in (0.5, 0.3)
            for name in tables
        ]:
            key = " ".join(map(str, case))
            if key not in known and options.only in key:
                known[key] = line(*case)
                print(" | ".join(known[key]), flush=True)
                if save:
                    save.write_text(json.dumps(known, indent=1), encoding="utf-8")
        os.chdir("/")
    if page:
        rows = [HEAD, ["---"] * len(HEAD), *known.values()]
        page.write_text(
            INTRODUCTION + "".join(f"| {' | '.join(row)} |\n" for row in rows), encoding="utf-8"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
