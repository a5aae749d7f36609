"""Whole random numbers."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import ive

from auditor.numerics import random_streams as draws
from auditor.numerics.random_streams import ReleaseKey, stream
from auditor.schemes.divisible_noise import skellam_increment

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
    return lambda rng, n: draws.log_concave(
        rng, np.full(n, float(law.median())), lambda k, at: law.logpmf(k)
    )


LOG_CONCAVE = {
    "binomial 1": stats.binom(1, 0.5), "binomial 25": stats.binom(25, 0.4),
    "binomial 2000": stats.binom(2000, 0.93), "poisson": stats.poisson(300.0),
    "geometric": stats.geom(0.2),
}  # fmt: skip


def of_poisson(m):
    return lambda rng, n: STREAMS["cipher"].poisson(m, n), lambda k: stats.poisson.pmf(k, m)


def of_skellam(v):
    return lambda rng, n: skellam_increment(rng, 0.0, v, n), lambda k: ive(np.abs(k), v)


def of_geometric(b):
    return lambda rng, n: draws.geometric(rng, b, n), lambda k: -np.expm1(-b) * np.exp(-b * k)


CASES = {f"geometric {b}": of_geometric(b) for b in (0.3, 6.0)}
CASES |= {f"poisson {m}": of_poisson(m) for m in (0.0, 0.05, 9.9, 300.0, 14_336.0)}
CASES |= {
    f"skellam {v}": of_skellam(v) for v in (0.01, 3.0, draws.LARGEST_TABLE, draws.LARGEST_TABLE + 1)
}
CASES |= {f"log-concave {name}": (of_law(law), law.pmf) for name, law in LOG_CONCAVE.items()}


@pytest.mark.parametrize("source", STREAMS)
def test_draws_follow_their_law(source):
    draws = {name: draw(STREAMS[source], 10_000) for name, (draw, _) in CASES.items()}
    found = {name: p_value(draws[name], law) for name, (_, law) in CASES.items()}
    assert min(found.values()) > ALARM / len(found), found
    assert all((drawn == np.rint(drawn)).all() for drawn in draws.values())
