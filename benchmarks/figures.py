"""The papers' figures at full strength, too slow for the tests.

`python -m benchmarks.figures [--write docs/evidence/figures.md]`. ``--save FILE`` keeps measured
parts, and a later run continues from it; `--only algorithms` measures one part. All parts need
about fifteen processor minutes.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
import tracemalloc
from collections.abc import Callable, Sequence
from math import log, sqrt
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import auditor
from auditor.data.table import Table
from auditor.numerics.blocks import row_blocks
from auditor.numerics.statistics import quantile
from auditor.registry import get
from auditor.results.model import AuditResult
from auditor.results.records import cells, pooled
from auditor.schemes.base.scheme import Key, table_moments

Part = dict[str, Any]


def table_of(n: int, N: int) -> Table:
    """Return a table of correlated attributes."""
    rng = np.random.default_rng(0)
    mixing = rng.standard_normal((N, N)) + 2 * np.eye(N)
    values = np.ascontiguousarray(rng.standard_normal((n, N)) @ mixing.T + 5.0)
    return Table(tuple(f"x{j}" for j in range(N)), values)


def levels_of(M: int) -> tuple[float, ...]:
    """Return levels in random order."""
    return tuple(np.random.default_rng(1).uniform(0.25, 1.0, M).tolist())


def seconds(work: Callable[[], object], timer: Callable[[], float]) -> float:
    """Return the time of one call."""
    start = timer()
    work()
    return timer() - start


def exponent(sizes: tuple[float, ...], costs: tuple[float, ...]) -> tuple[float, float]:
    """Return b and its standard error in ``cost ≈ a·size^b``, by least squares on logarithms.

    Examples
    --------
    >>> exponent((1.0, 2.0, 4.0), (3.0, 12.0, 48.0))
    (2.0, 0.0)
    """
    x, y = [log(size) for size in sizes], [log(cost) for cost in costs]
    n, x_mean, y_mean = len(x), sum(x) / len(x), sum(y) / len(y)
    spread = sum((u - x_mean) ** 2 for u in x)
    b = sum((u - x_mean) * (v - y_mean) for u, v in zip(x, y, strict=True)) / spread
    left = sum((v - y_mean - b * (u - x_mean)) ** 2 for u, v in zip(x, y, strict=True))
    return b, sqrt(max(0.0, left) / (n - 2) / spread)


INTRODUCTION = """\
# The papers' figures at full strength

<!-- Written by `python -m benchmarks.figures --write docs/evidence/figures.md`; do not edit. -->

[The gallery](gallery.md) shows each figure by a scenario that the suite can run. Figures 4 and 7 have more replicates here than a suite has
time for, Table 2 has no scenario, and of Figures 5 and 8 the gallery has pictures where this page has the seconds. All is measured by
`python -m benchmarks.figures`, a part at a time by `--only`; `--save FILE` continues a stopped run. Seconds are processor seconds.
"""


# -- Li 2012, Figure 4: accuracies at each level
# ---------------------------------------------------------------------------------------

MARGIN = 0.02
ACCURACIES = {"li2012-fig4": ("Iris", 360), "li2012-fig4-wisconsin": ("Wisconsin", 60)}
"""Replicates that leave some room: accuracies on 150 flowers scatter by 0.07 from release to
release, those on 683 records by 0.02."""
MODELS = {"utility_decision_tree": "decision tree", "utility_svm_rbf": "SVM"}


def accuracies() -> Part:
    """Return the equivalence tests at each level, with a margin of 0.02."""
    rows = []
    for scenario, (name, replicates) in ACCURACIES.items():
        asked = [
            {
                "equivalent": {
                    "schemes": ["correlated", "corner-wave"],
                    "metric": metric,
                    "margin": MARGIN,
                }
            }
            for metric in MODELS
        ]
        result = auditor.run(
            scenario, overrides={"replicates": replicates, "expect": asked}, workers=2
        )
        for metric, verdict in zip(MODELS, result.expectations, strict=True):
            margins = [shown(differences(result, metric, copy)) for copy in range(1, 21)]
            means = [float(differences(result, metric, copy).mean()) for copy in range(1, 21)]
            rows.append(
                {
                    "data": name,
                    "model": MODELS[metric],
                    "replicates": replicates,
                    "status": verdict.status,
                    "largest": max(means, key=abs),
                    "shown": max(margins),
                    "mean": float(np.mean(means)),
                }
            )
    return {"rows": rows}


def differences(result: AuditResult, metric: str, copy: int) -> np.ndarray:
    """Return the two schemes' differences in accuracy on one copy, shape (R,)."""
    found: dict[str, dict[int, float]] = {"correlated": {}, "corner-wave": {}}
    for r in result.measurements:
        if r.metric == metric and r.coalition == (copy,) and r.value is not None:
            found[r.scheme][r.replicate] = r.value
    return np.array(
        [
            value - found["corner-wave"][replicate]
            for replicate, value in found["correlated"].items()
        ]
    )


def shown(d: np.ndarray) -> float:
    """Return the smallest margin that two one-sided tests show at 5 %."""
    return float(abs(d.mean()) + quantile(0.95, len(d) - 1) * d.std(ddof=1) / math.sqrt(len(d)))


def page_of_accuracies(part: Part) -> str:
    lines = [
        "## Li, Chen, Li & Zhang (2012), Figure 4: the same accuracy at each level",
        "",
        "The paper calls the accuracies identical. Here differences of means are proved to be below",
        f"{MARGIN} at each of the 20 levels by itself (two one-sided tests at 5 %, paired by the folds);",
        "the scenarios, with fewer replicates, show it of the mean over all levels. *Smallest margin* is",
        "the smallest bound that these replicates prove at every level. A replicate takes about 0.8",
        "processor seconds of Iris and 3 of Wisconsin.",
        "",
        f"| data | classifier | replicates | largest difference | smallest margin | within ± {MARGIN} | mean over levels |",
        "| --- | --- | ---: | ---: | ---: | --- | ---: |",
    ]
    lines += [
        f"| {r['data']} | {r['model']} | {r['replicates']} | {r['largest']:+.4f} | {r['shown']:.4f} | {r['status']} | {r['mean']:+.4f} |"
        for r in part["rows"]
    ]
    return "\n".join(lines)


# -- Xiao 2009, Figure 7: draws of levels
# ----------------------------------------------------------------------------------------------

RECIPIENTS = [1, 3, 7, 15, 30]
SIZES = {3000: 100, 600_000: 10}
"""Records → draws of levels; the paper has one draw on 600,000."""


def draws() -> Part:
    """Return the reconstruction probability by number of recipients.

    Its mean over draws of levels, and its range.
    """
    rows = []
    for records, replicates in SIZES.items():
        sweep = {"schemes[*].levels.count": RECIPIENTS}
        changes = {"data.rows": records, "replicates": replicates, "sweep": sweep, "expect": []}
        result = auditor.run("xiao2009-fig7", overrides=changes, workers=2)
        for group in cells(result.measurements).values():
            if group[0].metric == "reconstruction_probability":
                values = [r.value for r in group if r.value is not None]
                mean, error = pooled(group)
                rows.append(
                    {
                        "records": records,
                        "draws": replicates,
                        "scheme": group[0].scheme,
                        "recipients": len(group[0].levels),
                        "mean": mean,
                        "half": quantile(0.975, replicates - 1) * (error or math.nan),
                        "low": min(values),
                        "high": max(values),
                    }
                )
    return {"rows": rows}


def page_of_draws(part: Part) -> str:
    lines = [
        "## Xiao, Tao & Chen (2009), Figure 7: over draws of the levels",
        "",
        "All m recipients pool. Each draw of the retention is from [0.001, 0.5]; the paper shows one",
        "draw. Mean over draws with its 95 % interval, and the lowest and the highest draw.",
        "",
        "| records | draws | m | independent copies | lowest – highest | multilevel copies | lowest – highest |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for records, count in SIZES.items():
        for m in RECIPIENTS:
            by = {
                r["scheme"]: r
                for r in part["rows"]
                if (r["records"], r["recipients"]) == (records, m)
            }
            both = by["uniform"], by["uniform-multilevel"]
            told = [
                f"{r['mean']:.3f} ± {r['half']:.3f} | {r['low']:.3f} – {r['high']:.3f}"
                for r in both
            ]
            lines.append(f"| {records:,} | {count} | {m} | {' | '.join(told)} |")
    return "\n".join(lines)


# -- Li 2012, Table 2 and Theorems 6 to 8: the three algorithms
# ------------------------------------------------------------------------

ALGORITHMS = {
    "Algorithm 1, parallel": ("parallel", "N³ + M N²", "M + N²"),
    "Algorithm 2, sequential": ("sequential", "N³ + M N²", "N²"),
    "Algorithm 3, on demand": ("on-demand", "M³ + N³", "M² + N²"),
    "independent noise": ("", "N³ + M N²", ""),
    "bridge (not in the paper)": ("bridge", "", ""),
}
"""Name in a scenario, and time and space of one record by Theorems 6, 7 and 8 and the remark
between them."""
DOUBLED = (16, 32, 64, 128, 256, 512, 1024)
GROWTH: dict[str, tuple[str, tuple[int, int, int], tuple[int, ...]]] = {
    "N, one record": ("M = 8", (1, 0, 8), DOUBLED),
    "M, one record": ("N = 2", (1, 2, 0), DOUBLED),
    "N": ("n = 1,000, M = 8", (1000, 0, 8), DOUBLED[:-1]),
    "M": ("n = 1,000, N = 2", (1000, 2, 0), DOUBLED[:-1]),
    "n": ("N = 4, M = 16", (0, 4, 16), tuple(1000 * 2**k for k in range(8))),
}
"""What else is fixed, n, N and M with 0 for the one that grows, and its sizes."""
ROUNDS = 5
ROWS = 3000
"""Records that K_X is of where fewer are asked for."""


def algorithms() -> Part:
    """Return time and memory of one request by algorithm and size."""
    start, rows = time.process_time(), []
    with threadpool_limits(limits=1):
        for variable, (_, fixed, sizes) in GROWTH.items():
            for size in sizes:
                n, N, M = (each or size for each in fixed)
                table = table_of(max(n, ROWS), N)
                for name, (algorithm, _, _) in ALGORITHMS.items():
                    request = asked_of(algorithm, table, n, M)
                    request()
                    took = median(seconds(request, time.process_time) for _ in range(ROUNDS))
                    rows.append(
                        {
                            "variable": variable,
                            "size": size,
                            "algorithm": name,
                            "seconds": took,
                            "bytes": beyond(request),
                        }
                    )
    return {"rows": rows, "seconds": time.process_time() - start}


def asked_of(algorithm: str, table: Table, n: int, M: int) -> Callable[[], None]:
    """Return a request for M copies of n records.

    The bridge makes the second half of the copies, after the first half.
    """
    scheme = get("scheme", "corner-wave" if algorithm else "correlated")
    made = scheme(scheme.Parameters.model_validate({"algorithm": algorithm} if algorithm else {}))
    levels, moments, key = levels_of(M), table_moments(table), Key(1, "corner-wave")
    copies, bounds = [np.zeros((n, table.width)) for _ in levels], row_blocks(n, table.width)
    out = M // 2 if algorithm in ("on-demand", "bridge") else 0

    def make(until: int, existing: int) -> None:
        sampler = made.sampler(levels[:until], moments, key, existing)
        for index, (a, b) in enumerate(bounds):
            sampler.block(index, table.read(a, b), [copy[a:b] for copy in copies[:until]], existing)

    if out:
        make(out, 0)
    return lambda: make(M, out)


def beyond(request: Callable[[], None]) -> int:
    """Return the largest memory of a request above table and copies, in bytes."""
    tracemalloc.start()
    try:
        request()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def page_of_algorithms(part: Part) -> str:
    lines = [
        "## Li, Chen, Li & Zhang (2012), Table 2 and Theorems 6 to 8: growth of the algorithms",
        "",
        "Processor time of one request, and the largest memory beyond the table and the copies.",
        "Algorithm 3 and the bridge draw the second half of M copies after the release of the first half. Theorems",
        "bound time and space of one record. Exponents are fitted on logarithms over the larger half of",
        "the sizes, ± a standard error; a bound of M³ is kept by any exponent up to 3.",
        "",
        "| algorithm | time, by theorem | space | growth in | time: exponent | seconds at most | memory: exponent | MB at most |",
        "| --- | --- | --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for name, (_, *stated) in ALGORITHMS.items():
        for variable in GROWTH:
            rows = [r for r in part["rows"] if (r["algorithm"], r["variable"]) == (name, variable)]
            sizes, last = tuple(float(r["size"]) for r in rows), rows[-1]
            half = len(sizes) // 2
            (b, error), (c, other) = (
                # the larger half, where fixed work counts least
                exponent(sizes[half:], tuple(float(r[what]) for r in rows)[half:])
                for what in ("seconds", "bytes")
            )
            first = (name, *stated) if variable == next(iter(GROWTH)) else ("", "", "")
            time_told, memory_told = (
                f"{b:.2f} ± {error:.2f} | {last['seconds']:.4f}",
                f"{c:.2f} ± {other:.2f} | {last['bytes'] / 1e6:.2f}",
            )
            lines.append(f"| {' | '.join(first)} | {variable} | {time_told} | {memory_told} |")
    lines += ["", *READ_ALGORITHMS, ""]
    for variable, (setting, _, sizes) in GROWTH.items():
        lines += [f"Milliseconds against {variable} ({setting}):", ""]
        lines += [
            f"| {variable} | {' | '.join(f'{size:,}' for size in sizes)} |",
            "| --- |" + " ---: |" * len(sizes),
        ]
        for name in ALGORITHMS:
            found = [
                1000 * r["seconds"]
                for r in part["rows"]
                if (r["algorithm"], r["variable"]) == (name, variable)
            ]
            lines.append(f"| {name} | {' | '.join(f'{ms:.3g}' for ms in found)} |")
        lines.append("")
    return "\n".join([*lines, f"Took {part['seconds']:.0f} s."])


READ_ALGORITHMS = (
    "- In N a request is one root of K_X: N³ operations at most, N² numbers. Then n M N² to multiply by it.",
    "- In M, Algorithm 2 grows in proportion, like independent noise. So does the bridge, which needs two",
    "  neighbours. Algorithm 3 weighs all released copies for each new one: M². Its solve in the levels, M³,",
    "  is negligible up to a thousand copies.",
    "- Algorithm 1 exceeds its theorem in M, in time and in space: here it multiplies by the Cholesky factor of",
    "  the levels, with M² weights. Theorem 6 uses sums along that factor (li2011, equation 29), and is then",
    "  Algorithm 2, sum by sum.",
    "- In n all grow in proportion, and memory does not grow: records are drawn block by block.",
)


# -- Li 2012, Figure 5, and Xiao 2009, Figure 8: time of a request
# ---------------------------------------------------------------------

TIMED = {
    "li2012-fig5": "Li, Chen, Li & Zhang (2012), Figure 5: seconds for the last M − L of M copies of 100,000 records",
    "xiao2009-fig8": "Xiao, Tao & Chen (2009), Figure 8: seconds for one more copy of 600,000 records, by look-up (`process`)",
    "xiao2009-fig8-multi-pert": "Xiao, Tao & Chen (2009), Figure 8: seconds for one more copy of 5,000 records, by the paper's algorithm",
}


def requests() -> Part:
    """Return the seconds of three scenarios and the expected growth.

    By scheme and number of copies.
    """
    found: Part = {}
    for scenario in TIMED:
        start = time.process_time()
        result = auditor.run(scenario)
        rows: dict[str, dict[str, float]] = {}
        for group in cells(result.measurements).values():
            if group[0].metric == "seconds":
                rows.setdefault(group[0].scheme, {})[str(next(iter(group[0].sweep.values())))] = (
                    pooled(group)[0]
                )
        growth = [
            (e.status, e.why)
            for e in result.expectations
            if e.expectation in ("growth-rate", "seconds")
        ]
        found[scenario] = {"rows": rows, "growth": growth, "seconds": time.process_time() - start}
    return found


def page_of_requests(part: Part) -> str:
    lines: list[str] = []
    for scenario, title in TIMED.items():
        rows = part[scenario]["rows"]
        counts = list(next(iter(rows.values())))
        lines += [
            f"## {title}",
            "",
            f"`auditor run {scenario}`, {part[scenario]['seconds']:.0f} s:",
            "",
        ]
        lines += [
            f"| copies | {' | '.join(f'{int(count):,}' for count in counts)} |",
            "| --- |" + " ---: |" * len(counts),
        ]
        lines += [
            f"| {scheme} | {' | '.join(f'{by[count]:.3g}' for count in counts)} |"
            for scheme, by in rows.items()
        ]
        lines += ["", *(f"- {status}: {why}" for status, why in part[scenario]["growth"]), ""]
    return "\n".join(lines).rstrip()


PARTS: dict[str, tuple[Callable[[], Part], Callable[[Part], str]]] = {
    "accuracies": (accuracies, page_of_accuracies),
    "draws": (draws, page_of_draws),
    "algorithms": (algorithms, page_of_algorithms),
    "requests": (requests, page_of_requests),
}


def machine() -> str:
    """Return a description of the machine."""
    return f"Python {sys.version.split()[0]}, numpy {np.__version__}, {os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}."


def main(arguments: Sequence[str]) -> int:
    """Measure, print the page, and write it with ``--write``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help=f"one part of {', '.join(PARTS)}")
    parser.add_argument(
        "--save", type=Path, help="where measured parts are kept as JSON, and taken from"
    )
    parser.add_argument("--write", type=Path, help="the page to write")
    given = parser.parse_args(arguments)
    kept: dict[str, Part] = (
        json.loads(given.save.read_text()) if given.save and given.save.exists() else {}
    )
    for name, (measure, _) in PARTS.items():
        if name not in kept and given.only in ("", name):
            kept[name] = {**measure(), "machine": machine()}
            if given.save:
                given.save.write_text(json.dumps(kept, indent=0) + "\n")
    told = [
        f"{page(kept[name])}\n\nMeasured on {kept[name]['machine']}"
        for name, (_, page) in PARTS.items()
        if name in kept
    ]
    text = "\n\n".join([INTRODUCTION.rstrip(), *told]) + "\n"
    sys.stdout.write(text)
    if given.write:
        given.write.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
