"""Contract of sources: a deterministic table of named columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from auditor.data.source import NORMAL, RecordLaw, Source
from auditor.numerics.statistics import standardised
from auditor.process.deferred import pd
from auditor.testing.contract import SEED, check_plugin, made, nothing_else_raised, require

ROWS = 60
LAW_ROWS = 4000
FURTHEST = 2.7
"""Bound on ``√n`` times an empirical distribution's distance; exceeded with probability ``2
e^{−2·2.7²}`` ≈ 1e-6."""
MOST_DEVIATIONS = 5.0
"""Bound on a null correlation, in standard deviations of 1/√n."""


def check_source(cls: type[Source], parameters: Mapping[str, Any] | None = None) -> None:
    """Check that a source keeps its contract.

    Parameters
    ----------
    cls : type
        The source's class, registered or not.
    parameters : mapping, optional
        In scenario spelling; default ``cls.trial``.

    Raises
    ------
    ContractError
        With the name of the check: one of ``check_plugin``, or ``describes its data``, ``a table``,
        ``unique names``, ``as many rows as asked``, ``same seed, same table``, ``finite``, ``labels
        and domains``, ``an outline``, ``a law``, ``follows its law``.

    Notes
    -----
    Values may be missing; the scenario decides their treatment.
    """
    check_plugin(cls, parameters)
    require(
        cls,
        "describes its data",
        cls.description,
        "expected a `description` of the data, found none",
    )
    frame = _frame(cls, parameters, SEED)
    require(
        cls,
        "a table",
        isinstance(frame, pd.DataFrame),
        f"expected `frame` to return a DataFrame, found a {type(frame).__name__}",
    )
    require(
        cls,
        "a table",
        frame.shape[0] >= 2 and frame.shape[1] >= 1,
        f"expected two records or more, found shape {frame.shape}",
    )
    names = [str(name) for name in frame.columns]
    require(
        cls,
        "unique names",
        len(set(names)) == len(names) and all(names),
        f"expected names, each once, found {names}",
    )
    width = made(cls, parameters).width()
    asked = len(frame) == ROWS if width else len(frame) <= ROWS
    require(
        cls,
        "as many rows as asked",
        asked,
        f"expected {'' if width else 'at most '}{ROWS} records, found {len(frame)}",
    )
    require(
        cls,
        "as many rows as asked",
        not width or width == frame.shape[1],
        f"expected {width} columns, as `width` says, found {frame.shape[1]}",
    )
    numbers = frame.select_dtypes("number")
    infinite = [
        str(name)
        for name in numbers
        if np.isinf(numbers[name].to_numpy(dtype=np.float64, na_value=np.nan)).any()
    ]
    require(
        cls,
        "finite",
        not infinite,
        f"expected finite numbers, found infinite ones in the columns {infinite}",
    )
    again = _frame(cls, parameters, SEED)
    require(
        cls,
        "same seed, same table",
        frame.equals(again),
        "expected the same table from the same seed, found another",
    )
    _labels(cls, made(cls, parameters), frame)
    _outline(cls, parameters, frame)
    _law(cls, parameters)


def _outline(cls: type[Source], parameters: Mapping[str, Any] | None, frame: pd.DataFrame) -> None:
    with nothing_else_raised(cls, "an outline"):
        known = made(cls, parameters).outline(ROWS)
    if known is None:
        return
    same = known.columns == tuple(frame.columns) and known.rows == len(frame)
    require(
        cls,
        "an outline",
        same,
        "expected the columns and the number of records of its table, found others",
    )
    x = frame.to_numpy(dtype=np.float64)
    for stated, found in (
        (known.mean, x.mean(axis=0)),
        (known.covariance, np.cov(x.T, ddof=0).reshape(x.shape[1], -1)),
    ):
        right = np.shape(stated) == found.shape and np.allclose(
            stated, found, rtol=1e-9, atol=1e-9 * float(np.abs(found).max())
        )
        require(
            cls,
            "an outline",
            right,
            "expected mean and covariance (divisor n) of its table, found others",
        )


def _frame(
    cls: type[Source], parameters: Mapping[str, Any] | None, seed: int, rows: int = ROWS
) -> Any:
    with nothing_else_raised(cls, "a table"):
        return made(cls, parameters).frame(rows, np.random.default_rng(seed))


def _law(cls: type[Source], parameters: Mapping[str, Any] | None) -> None:
    with nothing_else_raised(cls, "a law"):
        law = made(cls, parameters).law()
    if law is None:
        return
    require(
        cls,
        "a law",
        isinstance(law, RecordLaw),
        f"expected `law` to return a RecordLaw or None, found a {type(law).__name__}",
    )
    frame = _frame(cls, parameters, SEED, LAW_ROWS)
    names, n = [str(name) for name in frame.columns], len(frame)
    lacking = [] if law.normal else [name for name in names if name not in law.shapes]
    require(
        cls,
        "a law",
        not lacking,
        f"expected a shape of every attribute, or of none if jointly normal; found none of {lacking}",
    )
    values = standardised(frame.to_numpy(dtype=np.float64))
    shapes = [NORMAL] * len(names) if law.normal else [law.shapes[name] for name in names]
    if law.normal:  # for a normal law, sums are normal too
        values, shapes, names = (
            np.column_stack([values, standardised(values.sum(axis=1))]),
            [*shapes, NORMAL],
            [*names, "their sum"],
        )
    for name, shape, column in zip(names, shapes, values.T, strict=True):
        x, share = np.sort(column), np.arange(n + 1) / n
        # allows for the sample mean and deviation, which matter in a steep law
        reach = MOST_DEVIATIONS * (1.0 + np.abs(x)) / np.sqrt(n)
        off = float(
            np.sqrt(n)
            * np.maximum(share[1:] - shape.cdf(x + reach), shape.cdf(x - reach) - share[:-1]).max()
        )
        require(
            cls,
            "follows its law",
            off < FURTHEST,
            f"expected {name!r} to have its shape, found it {off:.1f}/√n off at n = {n:,}",
        )
    apart = (
        0.0
        if law.normal
        else float(np.abs(values.T @ values / np.sqrt(n) - np.sqrt(n) * np.eye(len(names))).max())
    )
    after = float(np.abs((values[1:] * values[:-1]).sum(axis=0)).max() / np.sqrt(n))
    for what, found in (("attributes", apart), ("records", after)):
        require(
            cls,
            "follows its law",
            found < MOST_DEVIATIONS,
            f"expected independent {what}, found a correlation of {found:.1f}/√n",
        )


def _labels(cls: type[Source], source: Source, frame: pd.DataFrame) -> None:
    unknown = {*cls.labels, *source.domains()} - set(frame.columns)
    require(
        cls,
        "labels and domains",
        not unknown,
        f"expected `labels` and `domains` of its own columns, found {sorted(unknown)}",
    )
    for name, domain in source.domains().items():
        inside = frame[name].dropna().isin(domain).all()
        require(
            cls,
            "labels and domains",
            inside,
            f"expected every value of {name!r} in its domain, found others",
        )
