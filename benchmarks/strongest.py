"""The strongest attack of each kind on real tables: `python -m benchmarks.strongest`.

`--save FILE` keeps the figures, `--before FILE` adds kept ones, `--write FILE` writes the page.
One corner-wave copy of each table at variance 0.3, perfect knowledge of moments. Tables are of
this package, scikit-learn, statsmodels and plotnine; without a package its tables are left
out. `--package-files DIR` names a folder of unpacked packages to read in their place."""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor

import auditor
from auditor import registry
from auditor.base.types import Array
from auditor_attacks.posterior import prior_by_likelihood

LEVEL, MOST_ROWS = 0.3, 10_000
RELEASES = ((LEVEL,), (LEVEL, 0.6, 0.9))
WINDOWS, LINES = (5, 21, 81, 161), 6
SEEDS = (2**40 + 1, 2**40 + 2, 2**40 + 3)
T_95 = 4.303
"""Student's t of two degrees of freedom."""
ATTACKS = (
    "llse",
    "distribution-analysis",
    "mixture-estimate",
    "joint-distribution-analysis",
    "serial-filter",
    "neighbour-mixture",
    "trend-smoother",
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
INTRODUCTION = f"""\
# The strongest attack of each kind

<!-- Written by `python -m benchmarks.strongest`; do not edit. -->

Squared error over the variance, summed over attributes in their own units, of one corner-wave copy at variance {LEVEL:g}, or of
three at {", ".join(map(str, RELEASES[1]))}: the strongest attack of each kind and its 95 % interval over {len(SEEDS)} draws of the noise.
*Before* is the strongest attack of the kind in an earlier run. Measured on the first {MOST_ROWS:,} records.

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
            left = auditor.attack(name, release, original=frame).normalized_error
            shares.setdefault(name, []).append(float(left))
    for name, found in shares.items():
        kind, share = registry.get("attack", name).attack_kind, float(np.mean(found))
        half = T_95 * float(np.std(found, ddof=1)) / np.sqrt(len(found))
        if kind not in best or share < best[kind][1]:
            best[kind] = (name, share, half)
    return best


def from_outside(Y: Array) -> dict[str, Array]:
    """Return estimates by moving averages and spectral lines, without the law of the noise."""
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
    return {name: Y.mean(axis=0) + each for name, each in found.items()}


def outside(frame: pd.DataFrame) -> dict[str, float | None]:
    """Return the shares that scripts from outside leave of one copy."""
    X = frame.to_numpy()
    y = np.asarray(auditor.perturb(frame, "corner-wave", [LEVEL], seed=SEEDS[0]).copies[0])
    total = ((X - X.mean(axis=0)) ** 2).sum()
    found = {
        name: float(((estimate - X) ** 2).sum() / total)
        for name, estimate in from_outside(y).items()
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
    attacks = ("llse", "mixture-estimate", "serial-filter", "trend-smoother", "neighbour-mixture")
    return floor, {
        name: float(auditor.attack(name, release, original=X).normalized_error) for name in attacks
    }


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
        f"\nScripts from outside, one copy, one draw: moving averages, the {LINES} strongest spectral lines of the copy, and a "
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
    asked = parser.parse_args()
    registry.discover(*registry.AUDITING)
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
