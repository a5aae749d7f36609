"""Contract of sources: a deterministic table of named columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from auditor.base import pd
from auditor.data.source import NORMAL, RecordLaw, Source
from auditor.numerics.statistics import standardised
from auditor.testing.contract import SEED, Contract

ROWS = 60
LAW_ROWS = 4000
FURTHEST = 2.7
"""Bound on ``√n`` times an empirical distribution's distance; exceeded with probability ``2
e^{−2·2.7²}`` ≈ 1e-6."""
MOST_DEVIATIONS = 5.0
"""Bound on a null correlation, in units of 1/√n."""


def check_source(cls: type[Source], parameters: Mapping[str, Any] | None = None) -> None:
    """Check that a source keeps its contract.

    Parameters
    ----------
    cls
        The source's class, registered or not.
    parameters
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
    _SourceContract(cls, parameters).check()


class _SourceContract(Contract):
    def check(self) -> None:
        self.check_description()
        require = self.require
        require("describes its data", self.cls.description, "a `description` of the data", "none")
        frame = self._frame(ROWS)
        a_frame = "`frame` to return a DataFrame"
        require("a table", isinstance(frame, pd.DataFrame), a_frame, type(frame).__name__)
        enough = frame.shape[0] >= 2 and frame.shape[1] >= 1
        require("a table", enough, "two records or more", f"shape {frame.shape}")
        names = [str(name) for name in frame.columns]
        unique = len(set(names)) == len(names) and all(names)
        require("unique names", unique, "names, each once", names)
        width = self.make().width()
        fits = (len(frame) == ROWS and frame.shape[1] == width) if width else len(frame) <= ROWS
        shape = f"{ROWS} records of {width} columns" if width else f"at most {ROWS} records"
        require("as many rows as asked", fits, shape, f"shape {frame.shape}")
        numbers = frame.select_dtypes("number").to_numpy(dtype=float, na_value=np.nan)
        require("finite", not np.isinf(numbers).any(), "finite numbers", "infinite ones")
        same = frame.equals(self._frame(ROWS))
        require("same seed, same table", same, "the same table from the same seed", "another")
        domains = self.make().domains()
        unknown = {*self.cls.labels, *domains} - set(names)
        own = "`labels` and `domains` of its own columns"
        require("labels and domains", not unknown, own, sorted(unknown))
        for name, domain in domains.items():
            inside = frame[name].dropna().isin(domain).all()
            require("labels and domains", inside, f"every value of {name!r} in its domain")
        self._check_outline(frame)
        self._check_law()

    def _frame(self, rows: int) -> Any:
        with self.no_other_error("a table"):
            return self.make().frame(rows, np.random.default_rng(SEED))

    def _check_outline(self, frame: pd.DataFrame) -> None:
        with self.no_other_error("an outline"):
            known = self.make().outline(ROWS)
            if known is None:
                return
            x = frame.to_numpy(dtype=float)
            covariance = np.cov(x.T, ddof=0).reshape(x.shape[1], -1)
            right = (known.columns, known.rows) == (tuple(frame.columns), len(frame)) and all(
                np.allclose(stated, found, rtol=1e-9, atol=1e-9 * float(np.abs(found).max()))
                for stated, found in ((known.mean, x.mean(axis=0)), (known.covariance, covariance))
            )
        expected = "columns, number of records, mean and covariance (divisor n) of its table"
        self.require("an outline", right, expected)

    def _check_law(self) -> None:
        with self.no_other_error("a law"):
            law = self.make().law()
        if law is None:
            return
        is_law, a_law = isinstance(law, RecordLaw), "`law` to return a RecordLaw or None"
        self.require("a law", is_law, a_law, type(law).__name__)
        frame = self._frame(LAW_ROWS)
        names, n = [str(name) for name in frame.columns], len(frame)
        lacking = [] if law.normal else [name for name in names if name not in law.shapes]
        a_shape = "a shape of every attribute, or of none if jointly normal"
        self.require("a law", not lacking, a_shape, f"none of {lacking}")
        values = standardised(frame.to_numpy(dtype=float))
        columns = {
            name: (law.shapes.get(name, NORMAL), x) for name, x in zip(names, values.T, strict=True)
        }
        if law.normal:  # then sums are normal too
            columns["their sum"] = NORMAL, standardised(values.sum(axis=1)[:, None])[:, 0]
        else:
            apart = np.abs(values.T @ values / np.sqrt(n) - np.sqrt(n) * np.eye(len(names))).max()
            self._require_independent("attributes", float(apart))
        for name, (shape, column) in columns.items():
            x, share = np.sort(column), np.arange(n + 1) / n
            # for the sample mean and deviation in a steep law
            reach = MOST_DEVIATIONS * (1.0 + np.abs(x)) / np.sqrt(n)
            above, below = share[1:] - shape.cdf(x + reach), shape.cdf(x - reach) - share[:-1]
            off = float(np.sqrt(n) * np.maximum(above, below).max())
            found = f"it {off:.1f}/√n off at n = {n:,}"
            self.require("follows its law", off < FURTHEST, f"{name!r} to have its shape", found)
        x = np.column_stack([column for _, column in columns.values()])
        after = np.abs((x[1:] * x[:-1]).sum(axis=0)).max() / np.sqrt(n)
        self._require_independent("records", float(after))

    def _require_independent(self, what: str, found: float) -> None:
        said = f"a correlation of {found:.1f}/√n"
        self.require("follows its law", found < MOST_DEVIATIONS, f"independent {what}", said)
