"""The project's k-anonymity against the libraries anjana and pycanon, on the Wisconsin data; prints a Markdown table.

They pin exact versions of numpy, pandas and scipy, so they run in an environment of their own (see
docs/method.md)::

    python3 -m venv /tmp/anjana && /tmp/anjana/bin/pip install anjana==1.2.3
    /tmp/anjana/bin/python -m benchmarks.bench_anonymity
"""

from __future__ import annotations

import contextlib
import io
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from auditor.schemes.generalisation.classes import promises
from auditor.schemes.generalisation.partition import Rules, bounds, full_domain, mondrian

QUASI = ["clump_thickness", "cell_size_uniformity", "bare_nuclei"]
SENSITIVE = "mitoses"
WIDTHS = [0.0, 2.0, 5.0, np.inf]
MOST_SUPPRESSED = 0.1
REPEATS = 5


def table() -> pd.DataFrame:
    """Return the complete records, as `{source: wisconsin, missing: drop}` has them."""
    frame = pd.read_csv(Path("auditor/data/files/wisconsin_original.csv"))[[*QUASI, SENSITIVE]]
    return frame.dropna().astype(float).reset_index(drop=True)


def bins(values: np.ndarray, width: float) -> np.ndarray:
    """Return the bin of every value as text, as `full_domain` bins it."""
    if width == 0:
        return values.astype(str)
    if np.isinf(width):
        return np.full(len(values), "*")
    low = values.min() + np.floor((values - values.min()) / width) * width
    return np.array([f"[{a:g}, {a + width:g})" for a in low])


def timed(run: Callable[[], Any]) -> tuple[float, Any]:
    """Return the median seconds of a few runs, and what one returned; what it prints is dropped."""
    seconds = []
    for _ in range(REPEATS):
        with contextlib.redirect_stdout(io.StringIO()):
            start = time.perf_counter()
            found = run()
            seconds.append(time.perf_counter() - start)
    return float(np.median(seconds)), found


def described(classes: pd.DataFrame, records: int) -> str:
    """Return k, classes, the discernibility (records each released record cannot be told from, on average) and what was suppressed."""
    sizes = classes.groupby(QUASI, observed=True).size()
    return f"{sizes.min()} | {len(sizes)} | {float((sizes**2).sum() / sizes.sum()):.1f} | {records - len(classes)}"


def makers(frame: pd.DataFrame, k: int) -> list[str]:
    """Return a row for each way of making the table k-anonymous."""
    from anjana.anonymity import k_anonymity as anjana_k

    Q = frame[QUASI].to_numpy()
    codes = np.unique(frame[SENSITIVE], return_inverse=True)[1]
    levels = {
        name: {height: bins(frame[name].to_numpy(), width) for height, width in enumerate(WIDTHS)}
        for name in QUASI
    }
    text = frame.assign(**{name: levels[name][0] for name in QUASI})
    rows = []
    seconds, found = timed(
        lambda: anjana_k(text.copy(), [], list(QUASI), k, 100.0 * MOST_SUPPRESSED, levels)
    )
    rows.append(
        f"| anjana {version('anjana')}, greedy full domain | {k} | {described(found, len(frame))} | {1e3 * seconds:.0f} |"
    )
    seconds, domain = timed(
        lambda: full_domain(Q, codes, Rules(k), [WIDTHS] * len(QUASI), MOST_SUPPRESSED)
    )
    assert domain is not None
    kept = pd.DataFrame(domain[1], columns=QUASI)[domain[0] >= 0]
    rows.append(
        f"| auditor, lowest full domain | {k} | {described(kept, len(frame))} | {1e3 * seconds:.0f} |"
    )
    seconds, parts = timed(lambda: mondrian(Q, codes, Rules(k)))
    numbers, _, _ = bounds(Q, parts)
    sizes = pd.DataFrame({name: numbers for name in QUASI})
    rows.append(
        f"| auditor, Mondrian | {k} | {described(sizes, len(frame))} | {1e3 * seconds:.0f} |"
    )
    return rows


def checkers(frame: pd.DataFrame) -> list[str]:
    """Return a row for each promise, as both compute it for the table with the quasi-identifiers in bins of 5; ours are found together."""
    from pycanon import anonymity as pycanon

    made = frame.assign(**{name: bins(frame[name].to_numpy(), 5.0) for name in QUASI})

    def own() -> list[float]:
        codes = pd.factorize(made[SENSITIVE], sort=True)[0]
        return list(
            promises(
                made.groupby(QUASI).ngroup().to_numpy()[:, None], codes, codes, "ordered"
            ).values()
        )

    asked: list[tuple[str, Callable[[], Any]]] = [
        ("k", lambda: pycanon.k_anonymity(made, QUASI)),
        ("distinct ℓ", lambda: pycanon.l_diversity(made, QUASI, [SENSITIVE])),
        ("entropy ℓ", lambda: pycanon.entropy_l_diversity(made, QUASI, [SENSITIVE])),
        ("α", lambda: pycanon.alpha_k_anonymity(made, QUASI, [SENSITIVE])[0]),
        ("t, by rank", lambda: pycanon.t_closeness(made, QUASI, [SENSITIVE])),
    ]
    rows, (own_seconds, found) = [], timed(own)
    for (name, theirs), a in zip(asked, found, strict=True):
        their_seconds, b = timed(theirs)
        rows.append(
            f"| {name} | {a:.6g} | {b:.6g} | {1e3 * own_seconds:.1f} | {1e3 * their_seconds:.1f} |"
        )
    return rows


def main() -> int:
    """Measure and print."""
    frame = table()
    print(
        "| made by | asked k | k | classes | discernibility | suppressed | ms |\n| --- | --- | --- | --- | --- | --- | --- |"
    )
    for k in (5, 10):
        print("\n".join(makers(frame, k)))
    print(
        f"\n| promise | auditor | pycanon {version('pycanon')} | auditor, ms | pycanon, ms |\n| --- | --- | --- | --- | --- |"
    )
    print("\n".join(checkers(frame)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
