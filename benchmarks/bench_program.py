"""The program."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from auditor.data.load import load_table
from benchmarks.conftest import Compare
from benchmarks.timing import run_python

MOST_SECONDS = 0.150
LEVELS = (0.3, 0.45, 0.6, 0.8, 1.0)


def test_start(compare: Compare) -> None:
    """The difference to a bare interpreter, over 150 ms."""
    compare(
        "`auditor --help`, less a bare interpreter",
        "150 ms",
        lambda: run_python("-m", "auditor", "--help"),
        lambda: run_python("-c", ""),
        at_most=1.0,
        rounds=15,
        figure=lambda work, bare: (work - bare) / MOST_SECONDS,
    )


@pytest.mark.parametrize(
    ("what", "changed"),
    [("two attacks", ["--set", "attacks=[llse, udr]"]), ("all attacks that apply", [])],
)
def test_quickstart(compare: Compare, tmp_path: Path, what: str, changed: list[str]) -> None:
    """Everything that the one line does, against a plain numpy script that rebuilds the table once a cell of it and says nothing."""
    table = load_table(
        "cps", columns=["age", "salary"], parameters={}, rng=np.random.default_rng(0), base=None
    )
    np.save(tmp_path / "x.npy", table.values / table.values.std(axis=0))
    script = tmp_path / "naive.py"
    script.write_text(NAIVE.format(levels=LEVELS, path=str(tmp_path / "x.npy")))
    compare(
        f"the quickstart, {what}: data, 31 coalitions of four releases, reports",
        "a numpy script that rebuilds the table 248 times",
        lambda: run_python(
            "-m",
            "auditor",
            "run",
            "scenarios/quickstart.yaml",
            "--quiet",
            "--output",
            str(tmp_path / "audit"),
            *changed,
        ),
        lambda: run_python(str(script)),
        rounds=3,
    )


NAIVE = """
from itertools import combinations
import numpy as np

X = np.load({path!r})
n, N = X.shape
levels = {levels}
K_X, mu, rng = np.cov(X.T), X.mean(axis=0), np.random.default_rng(0)
subsets = [c for k in range(1, 6) for c in combinations(range(5), k)]
for scheme in range(4):
    copies = [X + rng.standard_normal((n, N)) * level**0.5 for level in levels]
    for knowledge in range(2):
        for c in subsets:
            H = np.tile(np.eye(N), (len(c), 1))
            K_Z = np.kron(np.diag([levels[i] for i in c]), np.eye(N))
            W = K_X @ H.T @ np.linalg.inv(H @ K_X @ H.T + K_Z)
            Y = np.concatenate([copies[i] for i in c], axis=1)
            ((mu + (Y - np.tile(mu, len(c))) @ W.T - X) ** 2).mean()
"""
