"""Realistic mistakes in noise: the share that a knowing adversary leaves, and the share that an audit reports.

``python -m benchmarks.insider_mistakes > docs/evidence/mistakes.md`` audits each mistake in 10,000
rows; ``--only WORD`` some mistakes; ``--honest`` audits releases without a mistake by the same
attacks; ``--time`` measures their processor time.

A share left is a mean squared error over an attribute's variance. «before» is the least by attacks
that do not know the noise. «ratio» is the largest quotient of reported and true share over the
attributes, where shares below 1 % count as 1 %."""

from __future__ import annotations

import argparse
import hashlib
import random
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import scipy.special

import auditor
from auditor.audit.insider_noise.coincidences import coincidences
from auditor.audit.insider_noise.generators import known_generators
from auditor.audit.insider_noise.noise_density import noise_density
from auditor.audit.measures.every_cell import line_squares

ROWS, LEVEL, HIDDEN = 10_000, 1.5, 2**50
"""Rows, noise deviations over data deviations, and an offset of seeds that nobody guesses."""
WALK, SPREAD, TOGETHER, FIRST_ID = 0.3, 0.8, 4, 100_001
"""Deviation of a random walk's step, of the logarithm of a factor, rows with one total, and the first record's number."""
KNOWING = ("coincidences", "noise-density", "known-generator")
K = np.array(
    [[1.0, 0.5, 0.3, 0.2], [0.5, 1.0, 0.3, 0.1], [0.3, 0.3, 1.0, 0.2], [0.2, 0.1, 0.2, 1.0]]
)


class Mistake(NamedTuple):
    """Copies, the share left of each attribute, and whether no general attack can reach it."""

    copies: list[np.ndarray]
    truth: np.ndarray
    unreachable: bool = False


Make = Callable[[np.ndarray, np.random.Generator], Mistake]
"""Takes a table, which it may round in place, and a generator with a hidden seed."""


def table(rng: np.random.Generator, rows: int = ROWS) -> np.ndarray:
    """Return incomes, ages, whole hours and a score."""
    g = rng.normal(size=(rows, 4)) @ np.linalg.cholesky(K).T
    return np.column_stack(
        [
            np.exp(10.0 + 0.6 * g[:, 0]),
            40.0 + 12.0 * g[:, 1],
            np.round(30.0 + 10.0 * g[:, 2]) + 0.0,
            g[:, 3],
        ]
    )


def linear_truth(X: np.ndarray, value: np.ndarray, level: np.ndarray) -> np.ndarray:
    """Return the share that the best linear estimate leaves of rows with shared noise, by dense algebra; value of shape (k, n, N)."""
    k, n, N = value.shape
    R = np.kron(np.eye(n), np.corrcoef(X.T)[:N, :N])
    S = np.zeros((k * n * N, value.max() + 1))
    S[np.arange(k * n * N), value.ravel()] = np.broadcast_to(level, value.shape).ravel()
    H = np.tile(np.eye(n * N), (k, 1))
    C = R @ H.T
    left = R - C @ np.linalg.pinv(H @ R @ H.T + S @ S.T, hermitian=True) @ C.T
    return np.diag(left).reshape(n, N).mean(axis=0)


def between_rows(X: np.ndarray, S: np.ndarray) -> np.ndarray:
    """Return the share that the best linear estimate leaves of a middle row, given noise with covariance S between rows."""
    C = np.kron(np.eye(len(S)), np.corrcoef(X.T))
    left = C - C @ np.linalg.pinv(C + np.kron(S, np.eye(X.shape[1])), hermitian=True) @ C
    return np.diag(left).reshape(len(S), -1)[len(S) // 2]


def bayes_truth(
    copies: list[np.ndarray],
    X: np.ndarray,
    log_density: Callable[..., np.ndarray],
    columns: int = 1,
) -> np.ndarray:
    """Return the share that Bayes' rule leaves, from 40,000 fresh records and the true density of noise in deviations."""
    fresh, rows, s = (
        table(np.random.default_rng(HIDDEN + 99), 40_000),
        slice(0, ROWS, 20),
        X.std(axis=0),
    )
    found = np.zeros(X.shape[1])
    for j in range(0, X.shape[1], columns):
        here = slice(j, j + columns)
        for part in np.array_split(np.arange(ROWS)[rows], 20):
            log = sum(
                log_density(
                    (copy[part, None, here] - fresh[None, :, here]) / s[here],
                    fresh[None, :, here] / s[here],
                )
                for copy in copies
            )
            w = np.exp(log - log.max(axis=1, keepdims=True))
            estimate = np.einsum("tc,cd->td", w / w.sum(axis=1, keepdims=True), fresh[:, here])
            found[here] += ((estimate - X[part, here]) ** 2 / s[here] ** 2).sum(axis=0)
    return found / len(range(ROWS)[rows])


def two_points(z: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.logaddexp(
        -0.5 * ((z[..., 0] - LEVEL) / 0.05) ** 2, -0.5 * ((z[..., 0] + LEVEL) / 0.05) ** 2
    )


def student(z: np.ndarray, x: np.ndarray) -> np.ndarray:
    return -2.0 * np.log1p((z[..., 0] / 0.9) ** 2 / 3.0)


def box(z: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.where(np.abs(z[..., 0]) <= LEVEL * 3**0.5, 0.0, -1e3)


def outside(z: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.where((np.abs(z[..., 0]) >= 1.0) & (np.abs(z[..., 0]) <= 2.0), 0.0, -1e3)


def ring(z: np.ndarray, x: np.ndarray) -> np.ndarray:
    r = np.hypot(z[..., 0], z[..., 1])
    return np.where((r >= 1.5) & (r <= 1.8), -np.log(r + 1e-9), -1e3)


def above_zero(z: np.ndarray, x: np.ndarray) -> np.ndarray:
    return -0.5 * (z[..., 0] / LEVEL) ** 2 - scipy.special.log_ndtr(x[..., 0] / LEVEL)


def factor(z: np.ndarray, x: np.ndarray) -> np.ndarray:
    y = x[..., 0] + z[..., 0]
    log = np.log(np.where(x[..., 0] * y > 0, y / np.where(x[..., 0] == 0, 1.0, x[..., 0]), 1.0))
    return np.where(x[..., 0] * y > 0, -0.5 * (log / SPREAD) ** 2 - np.log(np.abs(y)), -1e3)


def gross(z: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.logaddexp(
        np.log(0.8 / 0.3) - 0.5 * (z[..., 0] / 0.3) ** 2,
        np.log(0.2 / 3.0) - 0.5 * (z[..., 0] / 3.0) ** 2,
    )


def mistakes() -> dict[str, Make]:
    """Return mistakes by name, each a function of the table and a generator with a hidden seed."""
    shape, n, half = (ROWS, 4), ROWS, ROWS // 2
    own, nothing = np.arange(4), np.zeros(4)

    def of(
        draw: Callable[[np.random.Generator], list[np.ndarray]],
        truth: Callable[[np.ndarray], np.ndarray] | np.ndarray,
    ) -> Make:
        def made(X: np.ndarray, rng: np.random.Generator) -> Mistake:
            copies = [X + X.std(axis=0) * z for z in draw(rng)]
            return Mistake(copies, truth(X) if callable(truth) else truth)

        return made

    def by_density(
        draw: Callable[[np.random.Generator], list[np.ndarray]],
        law: Callable[..., np.ndarray],
        columns: int = 1,
    ) -> Make:
        def made(X: np.ndarray, rng: np.random.Generator) -> Mistake:
            copies = [X + X.std(axis=0) * z for z in draw(rng)]
            return Mistake(copies, bayes_truth(copies, X, law, columns))

        return made

    def circles(rng: np.random.Generator) -> np.ndarray:
        angle, r = rng.uniform(0, 2 * np.pi, (2, n)), rng.uniform(1.5, 1.8, (2, n))
        return np.column_stack(
            [part for a, b in zip(angle, r, strict=True) for part in (b * np.cos(a), b * np.sin(a))]
        )

    def shifted(rng: np.random.Generator) -> list[np.ndarray]:
        stream = LEVEL * rng.normal(size=n + 150)
        return [np.stack([stream[50 * j : 50 * j + n] for j in range(4)], axis=1)]

    def added(rng: np.random.Generator) -> list[np.ndarray]:
        e = LEVEL * rng.normal(size=shape)
        return [e, np.vstack([e[:half], e[half + 1 :], LEVEL * rng.normal(size=(1, 4))])]

    def scaled(
        rng: np.random.Generator, move: Callable[[np.ndarray], np.ndarray]
    ) -> list[np.ndarray]:
        e = LEVEL * rng.normal(size=shape)
        return [e, 1.5 * move(e)]

    def blocks(e: np.ndarray) -> np.ndarray:
        return e.reshape(-1, 100, 4)[
            np.random.default_rng(HIDDEN).permutation(ROWS // 100)
        ].reshape(shape)

    def python(rng: np.random.Generator) -> list[np.ndarray]:
        draw = random.Random(123).gauss
        return [np.array([[draw(0.0, LEVEL) for _ in range(4)] for _ in range(n)])]

    def legacy(seed: int, copies: int) -> list[np.ndarray]:
        state = np.random.RandomState(seed)
        return [state.normal(0.0, LEVEL, shape) for _ in range(copies)]

    def hashed(reachable: bool) -> Make:
        def made(X: np.ndarray, rng: np.random.Generator) -> Mistake:
            def by_hash(value: float) -> float:
                bits = int.from_bytes(hashlib.sha256(f"salt {value}".encode()).digest()[:8], "big")
                return LEVEL * 3**0.5 * (2.0 * bits / 2.0**64 - 1.0)

            return Mistake(
                [X + X.std(axis=0) * np.vectorize(by_hash)(X)], nothing, unreachable=not reachable
            )

        return made

    def rounded_table(made: Make) -> Make:
        def on_rounded(X: np.ndarray, rng: np.random.Generator) -> Mistake:
            X[:] = np.column_stack(
                [np.round(X[:, 0], -3), np.round(X[:, 1]), X[:, 2], np.round(X[:, 3], 1) + 0.0]
            )
            return made(X, rng)

        return on_rounded

    def steps(X: np.ndarray, rng: np.random.Generator) -> Mistake:
        s = X.std(axis=0)
        X[:] = np.round(X / s / 1.2) * 1.2 * s
        copies = [X + 0.4 * s * rng.normal(size=shape)]
        found = np.empty(4)
        for j in range(4):
            values, counts = np.unique(X[:, j], return_counts=True)
            log = np.log(counts) - 0.5 * ((copies[0][:, j, None] - values) / (0.4 * s[j])) ** 2
            w = np.exp(log - log.max(axis=1, keepdims=True))
            found[j] = ((w @ values / w.sum(axis=1) - X[:, j]) ** 2).mean() / X[:, j].var()
        return Mistake(copies, found)

    def rounded_later(X: np.ndarray, rng: np.random.Generator) -> Mistake:
        def rounded(Y: np.ndarray) -> np.ndarray:
            return np.column_stack(
                [
                    np.round(column, digits)
                    for column, digits in zip(Y.T, (-1, 1, 0, 2), strict=True)
                ]
            )

        X[:] = rounded(X)
        copies = [X + X.std(axis=0) * z for z in scaled(rng, lambda e: np.roll(e, 11, axis=0))]
        return Mistake([rounded(Y) for Y in copies], nothing)

    def linked(
        value: np.ndarray, level: np.ndarray | float = LEVEL
    ) -> Callable[[np.ndarray], np.ndarray]:
        return lambda X: linear_truth(X, value[None], np.array(level))

    def half_left(X: np.ndarray) -> np.ndarray:
        # copies are equal before the added record, and determine all after it
        return 0.5 * linked(own[None])(X)

    def points(rng: np.random.Generator) -> np.ndarray:
        return LEVEL * rng.choice([-1.0, 1.0], shape) + 0.05 * rng.normal(size=shape)

    def beyond(rng: np.random.Generator) -> np.ndarray:
        return rng.choice([-1.0, 1.0], shape) * rng.uniform(1, 2, shape)

    def noise(rng: np.random.Generator, rows: int = n) -> np.ndarray:
        return LEVEL * rng.normal(size=(rows, 4))

    def dates(rng: np.random.Generator) -> list[np.ndarray]:
        return [np.random.default_rng(20240229).laplace(size=(4, n)).T]

    def resorted(X: np.ndarray, rng: np.random.Generator) -> Mistake:
        e, order = noise(rng), np.argsort(X[:, 1])
        again = np.empty_like(e)
        again[order] = e
        return Mistake([X + X.std(axis=0) * z for z in (e, again)], nothing)

    def positive(X: np.ndarray, rng: np.random.Generator) -> Mistake:
        y = np.zeros(shape)
        while (low := y <= 0).any():
            y[low] = (X + X.std(axis=0) * noise(rng))[low]
        return Mistake([y], bayes_truth([y], X, above_zero))

    def times(X: np.ndarray, rng: np.random.Generator) -> Mistake:
        y = X * np.exp(SPREAD * rng.normal(size=shape))
        return Mistake([y], bayes_truth([y], X, factor))

    def totals(rng: np.random.Generator) -> list[np.ndarray]:
        e = noise(rng).reshape(-1, TOGETHER, 4)
        return [(e - e.mean(axis=1, keepdims=True)).reshape(shape)]

    def bytes_only(rng: np.random.Generator) -> list[np.ndarray]:
        return [LEVEL * scipy.special.ndtri((rng.integers(0, 256, shape) + 0.5) / 256)]

    def by_number(rng: np.random.Generator) -> list[np.ndarray]:
        rows = [np.random.default_rng(FIRST_ID + row).normal(size=4) for row in range(n)]
        return [LEVEL * np.array(rows)]

    row = np.arange(121)
    walked = WALK**2 * (np.minimum(row[:, None], row) + 1e4)
    one_total = LEVEL**2 * (np.eye(TOGETHER) - 1.0 / TOGETHER)
    signs, pairs = np.array([[1.0], [-1.0]]), np.tile(own, (2, 1))
    stream = (np.arange(600)[:, None] + 50 * own) % 600
    return {
        "np.random.seed(42), normal": of(lambda rng: legacy(42, 1), nothing),
        "16-bit seed, three copies in one stream": of(lambda rng: legacy(51_966, 3), nothing),
        "default_rng(seed + i) for copy i": of(
            lambda rng: [noise(np.random.default_rng(2024 + i)) for i in (0, 1)], nothing
        ),
        "date as seed, Laplace, column by column": of(dates, nothing),
        "Python's random, seed 123": of(python, nothing),
        "one stream read by four columns": of(shifted, linked(stream)),
        "four workers with one seed": of(
            lambda rng: [np.tile(noise(rng, n // 4), (4, 1))], linked(np.tile(own, (4, 1)))
        ),
        "one seed for each of 50 groups": of(
            lambda rng: [np.tile(noise(rng, n // 50), (50, 1))], linked(np.tile(own, (50, 1)))
        ),
        "pool of 1,000 values": of(
            lambda rng: [LEVEL * rng.normal(size=1_000)[rng.integers(0, 1_000, shape)]],
            np.full(4, 1.0 / (40.0 + LEVEL**-2)),
        ),
        "noise repeats every 37 rows": of(
            lambda rng: [np.resize(noise(rng, 37), shape)], np.full(4, 37.0 / n)
        ),
        "re-run after one record was added": of(added, half_left),
        "hash of rounded values as noise": rounded_table(hashed(True)),
        "hash of unrounded values as noise": hashed(False),
        "geomasking in two columns, one copy": by_density(lambda rng: [circles(rng)], ring, 2),
        "geomasking in two columns, two copies": by_density(
            lambda rng: [circles(rng), circles(rng)], ring, 2
        ),
        "uniform noise in eight copies": by_density(
            lambda rng: [LEVEL * 3**0.5 * rng.uniform(-1, 1, shape) for _ in range(8)], box
        ),
        "balanced pairs of rows": of(
            lambda rng: [np.repeat(noise(rng, half), 2, axis=0) * np.resize(signs, (n, 1))],
            linked(pairs, LEVEL * signs),
        ),
        "the same noise scaled": of(lambda rng: scaled(rng, lambda e: e), nothing),
        "noise reversed": of(lambda rng: scaled(rng, lambda e: e[::-1]), nothing),
        "noise permuted by blocks": of(lambda rng: scaled(rng, blocks), nothing),
        "noise sorted in file order": of(lambda rng: [np.sort(noise(rng), axis=0)], nothing),
        "antithetic halves": of(
            lambda rng: [np.kron(signs, noise(rng, half))], linked(pairs, LEVEL * signs)
        ),
        "two-point noise with jitter, two copies": by_density(
            lambda rng: [points(rng), points(rng)], two_points
        ),
        "Student noise, three copies": by_density(
            lambda rng: [0.9 * rng.standard_t(3, shape) for _ in range(3)], student
        ),
        "exclusion zone, three copies": by_density(
            lambda rng: [beyond(rng) for _ in range(3)], outside
        ),
        "a fifth of gross errors": by_density(
            lambda rng: [np.where(rng.random(shape) < 0.2, 3.0, 0.3) * rng.normal(size=shape)],
            gross,
        ),
        "coarse steps, then noise": steps,
        "noise reused for two columns": of(
            lambda rng: [noise(rng)[:, [0, 0, 2, 3]]], linked(np.array([[0, 0, 1, 2]]))
        ),
        "one number for all columns of a row": of(
            lambda rng: [np.repeat(noise(rng)[:, :1], 4, axis=1)], linked(0 * own[None])
        ),
        "noise of a copy moved by 11 rows, all rounded": rounded_later,
        "new: one seed, the table sorted anew for copy 2": resorted,
        "new: drawn again until the value is positive": positive,
        "new: a factor exp(0.8 g)": times,
        "new: totals of four rows are kept": of(totals, lambda X: between_rows(X, one_total)),
        "new: a random walk from row to row": of(
            lambda rng: [np.cumsum(WALK * rng.normal(size=shape), axis=0)],
            lambda X: between_rows(X, walked),
        ),
        "new: noise of one byte, table rounded": rounded_table(of(bytes_only, nothing)),
        "new: the record's number as seed, from 100,001": of(by_number, nothing),
    }


def audited(X: np.ndarray, copies: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray, str, str]:
    """Return the least share of each attribute before and after, the verdict of `exposure` and the cause that it names."""
    with tempfile.TemporaryDirectory() as folder:
        for name, values in (
            ("original", X),
            *((f"copy-{number}", copy) for number, copy in enumerate(copies)),
        ):
            pd.DataFrame(values, columns=list("abcd")).to_csv(
                Path(folder) / f"{name}.csv", index=False
            )
        files = [str(Path(folder) / f"copy-{number}.csv") for number in range(len(copies))]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = auditor.run(
                {
                    "data": {"source": str(Path(folder) / "original.csv")},
                    "schemes": [{"name": "published", "copies": files, "aligned": True}],
                    "attacks": ["llse", "map-estimate"],
                    "knowledge": ["perfect"],
                    "expect": [{"exposure": {"unknown": {"at-least": 0.5}}}],
                    "coalitions": [[copy + 1] for copy in range(len(copies))]
                    + ([list(range(1, len(copies) + 1))] if len(copies) > 1 else []),
                }
            )
    records = [
        r
        for r in result.measurements
        if r.metric == "normalized_error" and r.attribute != "*" and r.value is not None
    ]
    before, after = (
        np.array(
            [
                min(
                    r.value
                    for r in records
                    if r.attribute == name and (knowing or r.attack not in KNOWING)
                )
                for name in "abcd"
            ]
        )
        for knowing in (False, True)
    )
    causes = [r for r in records if r.reason and r.value <= after["abcd".index(r.attribute)] + 1e-3]
    said = min(causes, key=lambda r: (round(r.value, 3), len(r.coalition))).reason if causes else ""
    return before, after, result.expectations[0].status, said or ""


def ratio(reported: np.ndarray, truth: np.ndarray) -> float:
    """Return the largest quotient of reported and true shares."""
    return float((np.maximum(reported, 0.01) / np.maximum(truth, 0.01)).max())


HEADING = """# Mistakes in noise

<!-- Written by `python -m benchmarks.insider_mistakes > docs/evidence/mistakes.md`; do not edit. -->

Copies of 10,000 rows without a stated law. *Truth* is the share that an adversary who knows the mistake leaves. *Before* is the least share
by attacks that do not know the noise, *after* by all. *Ratio* is the largest quotient of a reported and a true share.
Mistakes called *new* were invented when the attacks were finished.
"""


def report_mistakes(word: str) -> None:
    """Print the page: a line for each mistake."""
    print(HEADING)
    print("| mistake | truth | before | ratio | after | ratio | exposure ≥ 0.5 | cause |")
    print("| --- | --: | --: | --: | --: | --: | --- | --- |")
    for number, (name, make) in enumerate(mistakes().items()):
        if word not in name:
            continue
        rng = np.random.default_rng(HIDDEN + number)
        X = table(rng)
        copies, truth, unreachable = make(X, rng)
        before, after, verdict, cause = audited(X, copies)
        shares = f"{truth.mean():.3f} | {before.mean():.3f} | {ratio(before, truth):.1f} | {after.mean():.3f} | {ratio(after, truth):.1f}"
        print(
            f"| {name} | {shares} | {verdict} | {'nothing general can reach it' if unreachable else cause} |",
            flush=True,
        )


def report_honest() -> None:
    """Print false alarms in honest releases of five tables, three laws and three roundings, and how the density compares with a line."""
    alarms, releases, worst = 0, 0, 0.0
    for number in range(5):
        for law in ("normal", "laplace", "standard_t"):
            for digits in (None, 3, 1):
                rng = np.random.default_rng(HIDDEN + 1_000 + releases)
                X = honest_table(number, rng)
                s = X.std(axis=0)
                draws = [
                    rng.standard_t(4, X.shape)
                    if law == "standard_t"
                    else getattr(rng, law)(size=X.shape)
                    for _ in range(2)
                ]
                copies = [X + level * s * z for level, z in zip((0.6, 1.0), draws, strict=True)]
                if digits is not None:
                    X, *copies = (np.round(part / s, digits) for part in (X, *copies))
                coalitions = [(1,), (2,), (1, 2)]
                found = [
                    *coincidences(X, copies, coalitions),
                    *known_generators(X, copies, coalitions),
                ]
                alarms += bool(found)
                for one in noise_density(X, copies, coalitions):
                    line = line_squares(X, [copies[copy - 1] for copy in one.coalition]).mean(
                        axis=0
                    ) / X.var(axis=0)
                    worst = max(
                        worst, float(((one.left - line) / np.maximum(one.std_error, 1e-12)).max())
                    )
                releases += 1
    print(
        f"{releases} honest releases: {alarms} false alarms; the density is at most {worst:.1f} standard errors worse than a line"
    )


def honest_table(number: int, rng: np.random.Generator) -> np.ndarray:
    """Return a normal, skewed, sorted, whole-numbered or heavy-tailed table."""
    X = table(rng, 5_000)
    return [
        lambda: rng.normal(size=X.shape) @ np.linalg.cholesky(K).T,
        lambda: X,
        lambda: X[np.argsort(X[:, 0])],
        lambda: np.round(X / X.std(axis=0) * 10.0),
        lambda: rng.standard_t(3, X.shape),
    ][number]()


def report_time() -> None:
    """Print the processor time of each attack on an honest release of 10,000 rows, four columns and three copies."""
    rng = np.random.default_rng(HIDDEN)
    X = table(rng)
    copies, coalitions = (
        [X + level * X.std(axis=0) * rng.normal(size=X.shape) for level in (0.5, 1.0, 1.5)],
        [(1,), (2,), (3,), (1, 2, 3)],
    )
    for attack in (coincidences, noise_density, known_generators, known_generators):
        start = time.process_time()
        attack(X, copies, coalitions)
        print(f"{attack.__name__}: {time.process_time() - start:.2f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="word in the names of mistakes")
    parser.add_argument("--honest", action="store_true")
    parser.add_argument("--time", action="store_true")
    asked = parser.parse_args()
    if asked.honest:
        report_honest()
    elif asked.time:
        report_time()
    else:
        report_mistakes(asked.only)
