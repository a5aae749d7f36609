"""How cost grows."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import auditor
from benchmarks.conftest import Compare
from benchmarks.scaling import Curve
from benchmarks.timing import seconds

ROUNDS, FEWER = 2, 1
UNIT = "one XᵀX on 100,000 × 10"
AT_MOST = {"attributes with moments estimated": 2.0, "copies with moments estimated": 2.0}
"""Exponents; redraws of a thousand copies' moments, or of 500 attributes', are products of
matrices: in the end they are cubic."""
CASES: dict[str, tuple[str, tuple[int, ...]]] = {
    "rows": ("2 attributes, 5 copies, all 31 coalitions", tuple(1000 * 2**k for k in range(1, 13))),
    "attributes": ("20,000 rows, 3 copies, all 7 coalitions", tuple(2**k for k in range(10))),
    "copies": (
        "20,000 rows, 2 attributes, single copies and prefixes",
        tuple(2**k for k in range(1, 11)),
    ),
    "attributes with moments estimated": (
        "5,000 rows, 3 copies, all 7 coalitions",
        tuple(2**k for k in range(1, 8)),
    ),
    "copies with moments estimated": (
        "5,000 rows, 2 attributes, single copies and prefixes",
        tuple(2**k for k in range(1, 9)),
    ),
    "coalitions": ("20,000 rows, 2 attributes, 12 copies", (32, 64, 128, 256, 512, 1024, 2048)),
}


def scenario(variable: str, size: int) -> dict[str, Any]:
    varied, _, estimated = variable.partition(" with ")
    rows, width, copies = {
        "rows": (size, 2, 5),
        "attributes": (20_000, size, 3),
        "copies": (20_000, 2, size),
        "coalitions": (20_000, 2, 12),
    }[varied]
    rows = min(rows, 5_000) if estimated else rows
    coalitions: list[Any] = (
        ["subsets"] if varied in ("rows", "attributes") else ["singles", "prefixes"]
    )
    # half a million covariances would take time to read
    spectrum = {"mean-variance": 1.0, "count": 1, "small": 0.5, "attributes": width}
    return {
        "schema": 1,
        "title": variable,
        "seed": 1,
        "data": {"source": "gaussian", "spectrum": spectrum, "rows": rows},
        "schemes": [{"name": "correlated", "levels": {"uniform": [0.25, 1.0], "count": copies}}],
        "coalitions": [{"random": size}] if variable == "coalitions" else coalitions,
        "knowledge": [{"estimated": {"rows": 2000}} if estimated else "perfect"],
        "attacks": ["llse"],
    }


@pytest.mark.parametrize("variable", CASES)
def test_growth(compare: Compare, benchmark: Any, variable: str) -> None:
    """Everything ``auditor.run`` does, the table kept from a first run."""
    setting, sizes = CASES[variable]
    V = np.random.default_rng(0).standard_normal((100_000, 10))
    timer = time.process_time
    costs, rounds = [], FEWER if variable in AT_MOST else ROUNDS
    with threadpool_limits(limits=1):
        for size in sizes:
            asked = scenario(variable, size)
            auditor.run(asked)
            pairs = [
                (seconds(lambda: auditor.run(asked), timer), seconds(lambda: V.T @ V, timer))  # noqa: B023 (called at once)
                for _ in range(rounds)
            ]
            costs.append(float(np.median([work / unit for work, unit in pairs])))
    benchmark.pedantic(lambda: None, rounds=1)
    compare.curve(
        Curve(
            variable, setting, UNIT, tuple(map(float, sizes)), tuple(costs), AT_MOST.get(variable)
        )
    )
