"""Auditing ε."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from auditor.audit.measures.empirical_epsilon import Trials, empirical_epsilon
from auditor.registry import get
from auditor.schemes.base.scheme import Key
from benchmarks import FOLDER
from benchmarks.conftest import Compare

PEER = "multi-freq-ldpy==0.2.5"
TRIALS, VALUES, EPSILON = 500_000, 25, 1.0
RETENTION = math.expm1(EPSILON) / (math.expm1(EPSILON) + VALUES)
PEER_TRIALS = 50_000


@pytest.mark.benchmark(timer=time.process_time)
def test_audit(compare: Compare) -> None:
    rng = np.random.default_rng(1)

    def draw() -> list[np.ndarray]:
        return [
            np.where(rng.random(TRIALS) < RETENTION, value, rng.integers(0, VALUES, TRIALS))
            for value in (0, 1)
        ]

    outputs = draw()
    compare(
        f"lower bound on ε from {2 * TRIALS:,} outputs, {VALUES} values",
        "drawing them",
        lambda: empirical_epsilon(*outputs, VALUES),
        draw,
        at_most=2.0,
    )


def peer_python() -> Path:
    """Return an interpreter that has the peer: the one that AUDITOR_PEER_PYTHON names, or of an environment made for it once."""
    named = os.environ.get("AUDITOR_PEER_PYTHON")
    if named:
        return Path(named)
    folder = Path(tempfile.gettempdir()) / f"auditor-peer-{PEER.replace('==', '-')}"
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        try:
            subprocess.run(
                [sys.executable, "-m", "venv", str(folder)],
                check=True,
                capture_output=True,
                timeout=120,
            )
            subprocess.run(
                [str(python), "-m", "pip", "install", "-q", PEER],
                check=True,
                capture_output=True,
                timeout=300,
            )
        except (OSError, subprocess.SubprocessError) as error:
            pytest.skip(
                f"{PEER} cannot be installed here ({type(error).__name__}), so ε is audited without a peer"
            )
        (folder / "complete").touch()
    return python


@pytest.fixture
def peer() -> Iterator[Callable[[int], float]]:
    """Let the peer audit so many trials under each of two inputs."""
    script = FOLDER / "peers" / "randomized_response.py"
    with subprocess.Popen(
        [str(peer_python()), str(script), str(VALUES), str(EPSILON)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert json.loads(process.stdout.readline()) == "ready"

        def audit(trials: int) -> float:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(f"{trials}\n")
            process.stdin.flush()
            _, found = json.loads(process.stdout.readline())
            assert abs(found - EPSILON) < 0.3  # both audit the same mechanism
            return float(found)

        yield audit
        process.stdin.close()


def test_against_the_peer(compare: Compare, peer: Callable[[int], float]) -> None:
    """Drawing and bounding, by the clock, as the peer is another process; as many trials for both, the peer's time scaled from fewer."""
    scheme = get("scheme", "uniform")()
    key = Key(1, "distinguish", 1)
    compare(
        f"drawing and auditing {2 * TRIALS:,} trials, {VALUES} values: how many times faster",
        PEER.replace("==", " "),
        lambda: Trials(scheme, [RETENTION], VALUES, TRIALS, key).audit([1], 0.95),
        lambda: peer(PEER_TRIALS),
        at_least=50.0,
        figure=lambda work, floor: floor * TRIALS / PEER_TRIALS / work,
    )
