"""The strongest attack of each kind on real tables: `python -m benchmarks.strongest`.

`--save FILE` keeps the figures, `--before FILE` adds kept figures, `--write FILE` writes the page.
One corner-wave copy of each table at variance 0.3, perfect knowledge of moments. Tables are of
this package, scikit-learn, statsmodels and plotnine; without a package its tables are left
out. `--package-files DIR` names a folder of unpacked packages to read in their place.
`--all` measures which attacks `attacks: all` needs, by the strongest attacks on many releases."""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import fft, stats
from sklearn.ensemble import HistGradientBoostingRegressor

import auditor
from auditor import registry
from auditor.base.types import Array
from auditor.process.containment import contained
from auditor.runs.plan import checked_scenario
from auditor.runs.tables import table_of
from auditor_attacks.posterior import prior_by_likelihood

LEVEL, MOST_ROWS = 0.3, 10_000
RELEASES = ((LEVEL,), (LEVEL, 0.6, 0.9))
WINDOWS, LINES = (5, 21, 81, 161), 6
SEEDS = (2**40 + 1, 2**40 + 2, 2**40 + 3)
T_95 = 4.303
"""Student's t of two degrees of freedom."""
SERIAL = (
    "serial-filter",
    "neighbour-mixture",
    "trend-smoother",
    "matern-smoother",
    "hidden-markov",
)
ATTACKS = (
    "llse",
    "distribution-analysis",
    "mixture-estimate",
    "joint-distribution-analysis",
    *SERIAL,
)
TABLES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "diamonds": (
        "plotnine",
        "data/diamonds.csv",
        ("carat", "depth", "table", "price", "x", "y", "z"),
    ),
    "txhousing": (
        "plotnine",
        "data/txhousing.csv",
        ("sales", "volume", "median", "listings", "inventory"),
    ),
    "economics": (
        "plotnine",
        "data/economics.csv",
        ("pce", "pop", "psavert", "uempmed", "unemploy"),
    ),
    "randhie": (
        "statsmodels",
        "datasets/randhie/src/randhie.csv",
        ("mdvis", "meddol", "num", "income", "xage", "educdec", "disea", "ghindx"),
    ),
    "elnino": (
        "statsmodels",
        "datasets/elnino/elnino.csv",
        ("JAN", "FEB", "MAR", "APR", "MAY", "JUN"),
    ),
    "cps": ("auditor", "data/files/cps.parquet", ()),
    "wisconsin": ("auditor", "data/files/wisconsin_original.csv", ()),
    "cancer": ("sklearn", "datasets/data/breast_cancer.csv", ()),
}
RHO = 0.95
Z_SCALE, FEWEST_DENOISED, PRODUCTS = 0.5, 2_000, 12
RETENTIONS = (0.3, 0.5)
EACH, GROUPS, CLOSE = 1_000, 20, 0.1
"""For `--all`: records, groups of records for error bars, and tolerance in interquartile ranges."""
LEVELS = (0.3, 1.0, 8.0)
OTHER_FIGURES = ("naming", "attribute disclosure")
"""Kinds of attack without estimates of their own."""
GALLERY: dict[str, dict[str, Any]] = {
    "iris": {},
    "census-like": {"columns": ["age", "income"]},
    "components": {"shapes": ["bimodal", "uniform", "gamma"], "ratio": 1.0},
    "gaussian": {"spectrum": {"large": 400, "count": 5, "small": 10, "attributes": 20}},
    "autoregressive": {"attributes": 3},
}
"""Sources of the gallery, besides files."""
KNOWN = (3, 60, 400)
"""Records known in clear."""
MASKS: list[dict[str, Any]] = [
    {"scheme": "micro-aggregation", "levels": [10]},
    {"scheme": "data-swapping", "levels": [0.3]},
    {"scheme": "top-coding", "levels": [0.1]},
    {"scheme": "multiplicative-noise", "levels": [0.2]},
]
TURNED: list[dict[str, Any]] = [
    {"scheme": "rotation", "copies": 1},
    {"scheme": "rotation-noise", "levels": [0.1]},
    {"scheme": "random-projection", "dimensions": 2, "copies": 2},
    {"scheme": "random-projection", "dimensions": 2, "matrix": "dct"},
]
INTRODUCTION = f"""\
# The strongest attack of each kind

<!-- Written by `python -m benchmarks.strongest`; do not edit. -->

Squared error over the variance, summed over attributes in their own units, of one corner-wave copy at variance {LEVEL:g}, or of
three at {", ".join(map(str, RELEASES[1]))}: the strongest attack of each kind and its 95 % interval over {len(SEEDS)} draws of the noise.
*Before* is the strongest attack of the kind in an earlier run. Measured on the first {MOST_ROWS:,} records.

"""


NEEDS = f"""\
# Attacks that `attacks: all` needs

<!-- Written by `python -m benchmarks.strongest --all`; do not edit. -->

A cell is an attribute's share unknown, or its records not guessed closely, in one release. Releases are of {EACH:,} records of the tables
of the gallery and of the page of the strongest attacks, in order and shuffled: one corner-wave copy, three independent Gaussian or Laplace
copies from levels {", ".join(map(str, LEVELS))}, rotations, projections and masks, by all kinds of knowledge. Error bars are of paired
t-tests over {GROUPS} groups of records, with 5 % false discoveries. *Lost*: cells whose least share rises without the attack and without
slower ones that lose none. Attacks that lose none are not in `all`, but for `llse`, which closed forms refer to, and
`distribution-analysis`, which leaves least on some small tables under strong noise ([advice](advice.md)). Attacks on categories,
and attacks that name records or find attributes of classes, are not compared.

"""


def tables(folder: Path | None) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the available tables in the order of their files, without blanks."""
    for name, (package, path, columns) in TABLES.items():
        found = importlib.util.find_spec(package)
        roots = [*(Path(p) for p in (found.submodule_search_locations if found else None) or [])]
        files = [root / path for root in [*roots, *([folder / package] if folder else [])]]
        file = next((file for file in files if file.is_file()), None)
        if file is None:
            print(f"{name}: {package} is not installed", file=sys.stderr)
            continue
        skipped = {"skiprows": 1, "header": None} if name == "cancer" else {}
        frame = (
            pd.read_parquet(file) if file.suffix == ".parquet" else pd.read_csv(file, **skipped)  # type: ignore[call-overload]
        )
        frame = frame[list(columns)] if columns else frame.select_dtypes("number").iloc[:, :10]
        yield name, frame.rename(columns=str).dropna().head(MOST_ROWS).astype(float)


def strongest(
    frame: pd.DataFrame, levels: tuple[float, ...]
) -> dict[str, tuple[str, float, float]]:
    """Return the strongest attack of each kind, its share unknown and half-width."""
    best: dict[str, tuple[str, float, float]] = {}
    shares: dict[str, list[float]] = {}
    for seed in SEEDS:
        release = auditor.perturb(frame, "corner-wave", levels, seed=seed)
        for name in ATTACKS:
            with suppress(auditor.NotApplicable):
                left = auditor.attack(name, release, original=frame).normalized_error
                shares.setdefault(name, []).append(float(left))
    for name, found in shares.items():
        kind, share = registry.get("attack", name).attack_kind, float(np.mean(found))
        half = T_95 * float(np.std(found, ddof=1)) / np.sqrt(len(found))
        if kind not in best or share < best[kind][1]:
            best[kind] = (name, share, half)
    return best


def from_outside(Y: Array, K_Z: Array) -> dict[str, Array]:
    """Return estimates by moving averages and spectral lines, and by local levels given the noise."""
    centred = Y - Y.mean(axis=0)
    found = {
        f"moving average of {w}": np.apply_along_axis(
            lambda y, w=w: (
                np.convolve(y, np.ones(w), "same") / np.convolve(y * 0 + 1, np.ones(w), "same")
            ),
            0,
            centred,
        )
        for w in WINDOWS
        if w < len(Y)
    }
    lines = np.fft.rfft(centred, axis=0)
    least = np.sort(np.abs(lines), axis=0)[-LINES]
    found["spectral lines"] = np.fft.irfft(lines * (np.abs(lines) >= least), len(Y), axis=0)
    found["local levels"] = local_levels(centred, K_Z)
    return {name: Y.mean(axis=0) + each for name, each in found.items()}


def local_levels(y: Array, K_Z: Array) -> Array:
    """Smooth components of centred rows as random walks of the likeliest step."""
    spread, Q = np.linalg.eigh(K_Z)
    C = fft.dct(y @ Q, norm="ortho", axis=0)
    f = 2.0 - 2.0 * np.cos(np.pi * np.arange(1, len(y)) / len(y))
    for c, s in zip(C[1:].T, np.maximum(spread, 1e-12), strict=True):
        walks = s * np.geomspace(1e-7, 20.0, 60)[:, None] / f
        best = np.argmin((np.log(walks + s) + c * c / (walks + s)).sum(axis=1))
        c *= walks[best] / (walks[best] + s)
    return np.asarray(fft.idct(C, norm="ortho", axis=0) @ Q.T)


def outside(frame: pd.DataFrame) -> dict[str, float | None]:
    """Return the shares that scripts from outside leave of one copy."""
    X = frame.to_numpy()
    y = np.asarray(auditor.perturb(frame, "corner-wave", [LEVEL], seed=SEEDS[0]).copies[0])
    total = ((X - X.mean(axis=0)) ** 2).sum()
    found = {
        name: float(((estimate - X) ** 2).sum() / total)
        for name, estimate in from_outside(y, LEVEL * np.atleast_2d(np.cov(X.T, bias=True))).items()
    }
    denoiser = denoised(frame) if len(frame) >= FEWEST_DENOISED else None
    return {
        **dict.fromkeys(f"moving average of {w}" for w in WINDOWS),
        **found,
        "denoiser": denoiser,
    }


def denoised(frame: pd.DataFrame, seed: int = SEEDS[0]) -> float:
    """Return the share that a self-supervised denoiser leaves.

    Trees predict ``y − z/a`` from ``y + a z`` and neighbouring rows: both have independent noise
    if z has the law of the noise (pang2021).
    """
    X, rng = frame.to_numpy(), np.random.default_rng(seed)
    y = np.asarray(auditor.perturb(frame, "corner-wave", [LEVEL], seed=seed).copies[0])
    K = np.atleast_2d(np.cov(X.T, bias=True))
    values, axes = np.linalg.eigh(K)
    kept = values > 1e-12 * values[-1]
    root = axes[:, kept] * np.sqrt(values[kept])
    u = (y - X.mean(axis=0)) @ np.linalg.pinv(root).T
    z = np.sqrt(LEVEL) * rng.normal(size=u.shape)
    shown, wanted = u + Z_SCALE * z, u - z / Z_SCALE
    around = [np.roll(u, k, axis=0) for k in (-2, -1, 1, 2)]
    means = [(np.cumsum(u, axis=0) - np.roll(np.cumsum(u, axis=0), w, axis=0)) / w for w in (5, 20)]
    means = [np.roll(each, 1, axis=0) for each in means]  # of rows before
    F = np.hstack([shown, *around, *means, np.arange(len(u))[:, None]])
    fold, estimate = rng.integers(0, 2, len(u)), np.empty_like(u)
    for k in (0, 1):
        here = fold == k
        one = np.hstack([np.ones((len(u), 1)), F])
        B = np.linalg.lstsq(one[~here], wanted[~here])[0]
        for j, rest in enumerate((wanted - one @ B).T):
            trees = HistGradientBoostingRegressor(
                max_iter=80, max_leaf_nodes=15, early_stopping=True, random_state=0
            )
            fitted = trees.fit(F[~here], rest[~here]).predict(F[here])
            estimate[here, j] = one[here] @ B[:, j] + fitted
    left = ((X.mean(axis=0) + estimate @ root.T - X) ** 2).sum()
    return float(left / ((X - X.mean(axis=0)) ** 2).sum())


def categories(d: pd.DataFrame, retention: float, seed: int = SEEDS[0]) -> dict[str, float]:
    """Return mean posterior probabilities of wrong values of four columns of cps, by prior."""
    columns = [
        np.minimum(d.household_size, 6) - 1,
        d.age // 10 - 1,
        pd.qcut(d.salary, 6, labels=False),
        d.mortgage_interest > 0,
    ]
    codes = [np.asarray(column, dtype=int) for column in columns]
    sizes = [int(code.max()) + 1 for code in codes]
    x, s = np.ravel_multi_index(codes, sizes), int(np.prod(sizes))
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(len(x)) < retention, x, rng.integers(0, s, len(x)))
    counts = np.bincount(y, minlength=s).astype(float)
    priors = {
        "known exactly": np.bincount(x, minlength=s) / len(x),
        "posterior's, by likelihood": prior_by_likelihood(counts, retention),
        "mixture of products, outside": products(counts, sizes, retention, rng),
    }
    found = {}
    for name, q in priors.items():
        kept, out = retention * q[y], (1.0 - retention) / s
        right = q[x] * out + kept * (x == y)
        found[name] = float(1.0 - (right / (out + kept)).mean())
    return found


def products(counts: Array, sizes: list[int], p: float, rng: np.random.Generator) -> Array:
    """Return a mixture of products of the columns' shares, by EM from copies, shape (s,)."""
    s, cells = counts.size, np.array(np.unravel_index(np.arange(counts.size), sizes))
    alpha = np.full(PRODUCTS, 1.0 / PRODUCTS)
    shares = [0.5 * rng.dirichlet(np.full(size, 5.0), PRODUCTS) + 0.5 / size for size in sizes]
    for _ in range(200):
        each = alpha[:, None] * np.prod(
            [share[:, at] for share, at in zip(shares, cells, strict=True)], axis=0
        )
        q = each.sum(axis=0)
        shown = counts / (p * q + (1.0 - p) / s)
        expected = each * (p * shown + (1.0 - p) / s * shown.sum())
        alpha = expected.sum(axis=1) / expected.sum()
        shares = [
            np.stack([np.bincount(at, row, size) for row in expected]) + 0.01
            for at, size in zip(cells, sizes, strict=True)
        ]
        shares = [share / share.sum(axis=1, keepdims=True) for share in shares]
    return np.asarray(q)


def smoothed_floor(rows: int = 5_000, seed: int = 40) -> tuple[float, dict[str, float]]:
    """Return the exact smoother's error on a lognormal autoregression, and attacks' errors.

    Forward and backward recursions on a grid of 600 points of the normal series.
    """
    rng = np.random.default_rng(seed)
    g = np.empty(rows)
    g[0] = rng.normal()
    for t in range(1, rows):
        g[t] = RHO * g[t - 1] + np.sqrt(1 - RHO**2) * rng.normal()
    X = pd.DataFrame({"x": np.exp(g)})
    release = auditor.perturb(X, "corner-wave", [LEVEL], seed=2**40 + 1)
    y, variance = np.asarray(release.copies[0])[:, 0], LEVEL * float(X.x.var(ddof=0))
    grid = np.linspace(-5.0, 5.0, 600)
    step = np.exp(-0.5 * (grid[None] - RHO * grid[:, None]) ** 2 / (1 - RHO**2))
    step /= step.sum(axis=1, keepdims=True)
    likelihood = np.exp(-0.5 * (y[:, None] - np.exp(grid)) ** 2 / variance) + 1e-300
    forward, backward = np.empty_like(likelihood), np.ones_like(likelihood)
    forward[0] = np.exp(-0.5 * grid**2) * likelihood[0]
    for t in range(1, rows):
        forward[t - 1] /= forward[t - 1].sum()
        forward[t] = (forward[t - 1] @ step) * likelihood[t]
    for t in range(rows - 2, -1, -1):
        backward[t] = step @ (likelihood[t + 1] * backward[t + 1])
        backward[t] /= backward[t].sum()
    posterior = forward * backward
    estimate = posterior @ np.exp(grid) / posterior.sum(axis=1)
    floor = float(((estimate - X.x) ** 2).mean() / X.x.var(ddof=0))
    attacks = ("llse", "mixture-estimate", *SERIAL)
    return floor, {
        name: float(auditor.attack(name, release, original=X).normalized_error) for name in attacks
    }


Cell = dict[str, Array]
"""Share left in each group of records, shape (GROUPS,), by attack."""


def every_table(folder: Path | None) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the tables of `--all`, standardized; files shuffled, too."""
    for name, frame in tables(folder):
        for order, rows in ("", frame), (", shuffled", frame.sample(frac=1.0, random_state=1)):
            yield name + order, (rows - frame.mean()).head(EACH) / frame.std(ddof=0)
    for name, options in GALLERY.items():
        rows = {} if name == "iris" else {"rows": EACH}
        data = {"source": name, "standardize": True, **rows, **options}
        parts = {"data": data, "schemes": ["rotation"], "attacks": ["known-io-rotation"]}
        knowledge = {"schema": 1, "knowledge": [{"known-records": 1}]}
        table, _ = table_of(checked_scenario({**parts, **knowledge}, {}, None))
        yield name, pd.DataFrame(table.values, columns=list(table.attributes))


def releases(name: str, frame: pd.DataFrame) -> Iterator[tuple[dict[str, Any], Any, Any]]:
    """Yield schemes, coalitions and knowledge of `--all`."""
    first, *rest = map(str, frame.columns)
    knows: list[Any] = [{"estimated": {"rows": rows}} for rows in KNOWN[1:]]
    knows.append({"known-attributes": [first]})
    knows += [{"known-records": count} for count in KNOWN]
    knows += [{"known-sample": 400}, {"unmatched-records": 300}]
    for level in LEVELS:
        for scheme, held in ("corner-wave", [1]), ("independent", "all"), ("laplace", "all"):
            some = {"scheme": scheme, "levels": [level * k for k in (1, 2, 3)]}
            yield some, held, "perfect"
            if "shuffled" not in name and level == LEVELS[1] and scheme == "independent":
                for each in [*knows, {"model": {"target": first, "predictors": rest, "depth": 3}}]:
                    yield some, held, each
    if "shuffled" not in name:
        yield from ((some, "all", each) for some in TURNED for each in knows[3:])
        yield from ((some, "all", each) for some in MASKS for each in ("perfect", *knows[3:5]))


def figures(X: Array, found: Array) -> Iterator[Array]:
    """Yield shares unknown and not close, each attribute's of shape (GROUPS,)."""
    whole = len(X) - len(X) % GROUPS
    errors = np.abs(found - X)[:whole].reshape(-1, GROUPS, X.shape[1])
    low, middle, high = np.quantile(X, (0.25, 0.5, 0.75), axis=0)
    typical = np.median(np.abs(X - middle), axis=0)
    squared = (errors**2).mean(axis=0) / X.var(axis=0)
    median = (np.median(errors, axis=0) / np.where(typical > 0.0, typical, np.nan)) ** 2
    smaller = median.mean(axis=0) < squared.mean(axis=0)
    yield from np.minimum(np.where(smaller, median, squared), 1.0).T
    near = CLOSE * (high - low)
    yield from 1.0 - np.where(near > 0.0, errors <= near, 0.0).mean(axis=0).T


def every_cell(folder: Path | None) -> Iterator[Cell]:
    """Yield the figures of every attack that applies, cell by cell."""
    names = registry.names("attack")
    fits = [name for name in names if registry.get("attack", name).attack_kind not in OTHER_FIGURES]
    for name, frame in every_table(folder):
        seen: dict[str, Any] = {}
        for scheme, held, knowledge in releases(name, frame):
            if str(scheme) not in seen:
                seen[str(scheme)] = auditor.perturb(frame, **scheme, seed=SEEDS[0])
            cells: list[Cell] = [{} for _ in range(2 * frame.shape[1])]
            for attack in fits:
                with contained():
                    one = auditor.attack(attack, seen[str(scheme)], frame, held, knowledge, seed=1)
                    found = figures(frame.to_numpy(), np.asarray(one.values))
                    for cell, shares in zip(cells, found, strict=True):
                        cell[attack] = shares
            yield from cells
        print(name, file=sys.stderr, flush=True)


def strongest_of(cell: Cell, some: set[str]) -> tuple[str, Array]:
    """Return the attack that leaves least, and its shares; 1 without an attack."""
    shares = [(float(cell[name].mean()), name) for name in sorted(some & cell.keys())]
    name = min(shares, default=(1.0, ""))[1]
    return name, cell.get(name, np.ones(GROUPS))


def rises(cells: list[Cell], names: set[str], rest: set[str]) -> int:
    """Return the cells with a higher least share by ``rest`` alone.

    By paired t-tests over groups, with a false discovery rate of 5 %.
    """
    found = [np.zeros(GROUPS)]
    for cell in cells:
        (best, least), (other, left) = (strongest_of(cell, some) for some in (names, rest))
        if best != other and left.mean() > least.mean():
            found.append(left - least)
    rise = np.array(found)
    error = rise.std(axis=1, ddof=1) / np.sqrt(GROUPS)
    p = np.sort(stats.t.sf(rise.mean(axis=1) / (error + 1e-12), GROUPS - 1))[:-1]
    sure = p <= 0.025 * np.arange(1, len(p) + 1) / max(1, len(p))
    return int(sure.nonzero()[0].max(initial=-1)) + 1


def needed(cells: list[Cell]) -> dict[str, tuple[int, int, int, int]]:
    """Return the numbers of cells with an attack, where it wins, and by more than the error bar.

    Also where the least share rises without it and slower attacks that are left out. An attack
    stays out if its absence raises none.
    """
    names = {name for cell in cells for name in cell}
    first = Counter(strongest_of(cell, names)[0] for cell in cells)

    def speed(name: str) -> tuple[bool, float, str]:
        attack = registry.get("attack", name)
        return attack.best_linear, -attack.cost.row, name

    rest, found = set(names), dict[str, tuple[int, int, int, int]]()
    for name in sorted(names, key=speed):
        lost = rises(cells, names, rest - {name})
        rest -= set() if lost else {name}
        seen = sum(name in cell for cell in cells)
        found[name] = seen, first[name], rises(cells, names, names - {name}), lost
    return dict(sorted(found.items()))


def needs(folder: Path | None) -> str:
    """Return the page of `--all`."""
    rows = [
        f"| {name} | {seen:,} | {first:,} | {surely:,} | {lost:,} |"
        for name, (seen, first, surely, lost) in needed(list(every_cell(folder))).items()
    ]
    head = "| attack | cells | strongest | by more than the error bar | lost without it |"
    return "\n".join([NEEDS, head, "| --- | --: | --: | --: | --: |", *rows, ""])


def page(lines: dict[str, Any], before: dict[str, Any]) -> str:
    """Return the page of all tables."""
    text = [
        INTRODUCTION,
        "| table | rows × attributes | kind | attack | one copy | before | three copies |",
        "| --- | --: | --- | --- | --: | --: | --: |",
    ]
    for name, line in lines["tables"].items():
        earlier = before.get("tables", {}).get(name, {}).get("kinds", {})
        for kind, (attack, share, half) in sorted(line["kinds"].items(), key=lambda one: one[1][1]):
            old = earlier.get(kind)
            shown = "–" if old is None else f"{old[1]:.3f} ± {old[2]:.3f} ({old[0]})"
            _, pooled, its_half = line["three"][kind]
            text.append(
                f"| {name} | {line['shape']} | {kind} | {attack} | {share:.3f} ± {half:.3f} | {shown} | {pooled:.3f} ± {its_half:.3f} |"
            )
    floor, attacks = lines["floor"]
    text.append(
        f"\nA lognormal autoregression, ρ = {RHO:g}, 5,000 rows: the exact smoother, with the law of the series, leaves {floor:.4f}."
    )
    text.append("\n| attack | leaves | before |\n| --- | --: | --: |")
    old = dict(before["floor"][1]) if before else {}
    for name, left in attacks.items():
        shown = f"{old[name]:.4f}" if name in old else "–"
        text.append(f"| {name} | {left:.4f} | {shown} |")
    names = list(next(iter(lines["tables"].values()))["outside"])
    text.append(
        f"\nScripts from outside, one copy, one draw: moving averages, the {LINES} strongest spectral lines of the copy, local levels "
        "(random walks) of its principal components, and a "
        "self-supervised denoiser (trees on recorrupted copies and neighbours)."
    )
    text.append(f"\n| table | {' | '.join(names)} | strongest attack |")
    text.append("| --- |" + " --: |" * (len(names) + 1))
    for name, line in lines["tables"].items():
        least = min(share for _, share, _ in line["kinds"].values())
        found = (line["outside"].get(each) for each in names)
        shares = ["–" if share is None else f"{share:.3f}" for share in found]
        text.append(f"| {name} | {' | '.join(shares)} | {least:.3f} |")
    text.append(
        "\nFour columns of cps as one category of one uniform copy: mean posterior probability of wrong values."
    )
    heads = [f"retention {p:g}" for p in RETENTIONS]
    text.append(f"\n| prior | {' | '.join(heads)} |\n| --- | {'--: | ' * len(heads)}".rstrip())
    for name in lines["categories"][0]:
        shares = [f"{each[name]:.4f}" for each in lines["categories"]]
        text.append(f"| {name} | {' | '.join(shares)} |")
    return "\n".join(text) + "\n"


def main() -> None:
    """Measure, and write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    for option in ("--save", "--before", "--write", "--package-files"):
        parser.add_argument(option, type=Path)
    parser.add_argument("--all", action="store_true")
    asked = parser.parse_args()
    registry.discover(*registry.AUDITING)
    if asked.all:
        (asked.write or Path("/dev/stdout")).write_text(needs(asked.package_files), "utf-8")
        return
    lines: dict[str, Any] = {"tables": {}, "floor": smoothed_floor()}
    for name, frame in tables(asked.package_files):
        shape = f"{len(frame):,} × {frame.shape[1]}"
        if name == "cps":
            lines["categories"] = [categories(frame, p) for p in RETENTIONS]
        one, three = (strongest(frame, levels) for levels in RELEASES)
        lines["tables"][name] = {
            "shape": shape,
            "kinds": one,
            "three": three,
            "outside": outside(frame),
        }
        print(name, lines["tables"][name], file=sys.stderr, flush=True)
    before = json.loads(asked.before.read_text()) if asked.before else {}
    if asked.save:
        asked.save.write_text(json.dumps(lines, indent=1))
    text = page(lines, before)
    if asked.write:
        asked.write.write_text(text, encoding="utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main()
