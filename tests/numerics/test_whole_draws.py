"""Whole random numbers."""

from decimal import Decimal, getcontext
from math import factorial

import numpy as np
import pytest
from scipy import stats
from scipy.special import ive

from auditor.numerics.random_streams import ReleaseKey, stream
from auditor.numerics.whole_draws import (
    LARGEST_TABLE,
    geometric,
    log_concave,
    log_poisson,
    poisson,
    skellam,
)

STREAMS = {"numpy": stream(7, "whole"), "cipher": ReleaseKey(bytes(range(32))).stream("whole")}
ALARM = 1e-6
"""Chance of a test to refuse draws that follow their law."""


def p_value(drawn, law):
    """Return the p of a χ² of draws from 0 or their least upwards."""
    k = np.arange(int(drawn.min()), int(drawn.max()) + 1)
    expected, found = (
        len(drawn) * law(k.astype(float)),
        np.bincount((drawn - k[0]).astype(int), minlength=len(k)),
    )
    many = expected >= 10
    expected, found = expected[many], found[many]
    statistic, rest = ((found - expected) ** 2 / expected).sum(), len(drawn) - expected.sum()
    if rest < 5:
        return stats.chi2.sf(statistic, len(expected) - 1)
    return stats.chi2.sf(statistic + (len(drawn) - found.sum() - rest) ** 2 / rest, len(expected))


def of_law(law):
    """Draw from a log-concave law of scipy's by rejection."""
    return lambda rng, n: log_concave(
        rng, np.full(n, float(law.median())), lambda k, at: law.logpmf(k)
    )


LOG_CONCAVE = {
    "binomial 1": stats.binom(1, 0.5), "binomial 25": stats.binom(25, 0.4), "binomial 2000": stats.binom(2000, 0.93),
    "poisson": stats.poisson(300.0), "geometric": stats.geom(0.2),
}  # fmt: skip


def of_poisson(m):
    return lambda rng, n: poisson(rng, np.full(n, m)), lambda k: stats.poisson.pmf(k, m)


def of_skellam(v):
    return lambda rng, n: skellam(rng, v, n), lambda k: ive(np.abs(k), v)


def of_geometric(b):
    return lambda rng, n: geometric(rng, b, n), lambda k: -np.expm1(-b) * np.exp(-b * k)


CASES = {f"geometric {b}": of_geometric(b) for b in (0.3, 6.0)}
CASES |= {f"poisson {m}": of_poisson(m) for m in (0.05, 9.9, 10.0, 300.0)}
CASES |= {f"skellam {v}": of_skellam(v) for v in (0.01, 3.0, LARGEST_TABLE, LARGEST_TABLE + 1)}
CASES |= {f"log-concave {name}": (of_law(law), law.pmf) for name, law in LOG_CONCAVE.items()}


@pytest.mark.parametrize("source", STREAMS)
def test_draws_follow_their_law(source):
    draws = {name: draw(STREAMS[source], 10_000) for name, (draw, _) in CASES.items()}
    found = {name: p_value(draws[name], law) for name, (_, law) in CASES.items()}
    assert min(found.values()) > ALARM / len(found), found
    assert all((drawn == np.rint(drawn)).all() for drawn in draws.values())


def exact_log_poisson(k, mean):
    """``k ln m − m − ln k!`` with 60 digits."""
    getcontext().prec = 60
    pi = Decimal("3.14159265358979323846264338327950288419716939937510582097494")
    k, m = Decimal(k), Decimal(mean)
    if k <= 2000:
        return k * m.ln() - m - Decimal(factorial(int(k))).ln()
    series = (
        1 / (12 * k) - 1 / (360 * k**3) + 1 / (1260 * k**5) - 1 / (1680 * k**7) + 1 / (1188 * k**9)
    )
    return k * m.ln() - m - (k * k.ln() - k + (2 * pi * k).ln() / 2 + series)


@pytest.mark.parametrize(
    ("k", "mean"),
    [
        (0, 3.0), (15, 20.0), (16, 20.0), (100, 81.0), (100, 83.0), (1000, 1100.0), (10**12, 1e12 + 1e6),
        (10**15 + 3 * 10**7, 1e15),
    ],
)  # fmt: skip
def test_log_poisson_has_its_digits_at_any_size(k, mean):
    exact = exact_log_poisson(k, mean)
    assert abs(Decimal(float(log_poisson(np.array(float(k)), mean))) - exact) < Decimal(
        "3e-15"
    ) * max(1, abs(exact))
