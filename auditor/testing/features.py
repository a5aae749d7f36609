"""Contract of feature families: finite numbers, no held-out originals."""

from __future__ import annotations

from typing import Any

import numpy as np

from auditor.audit.insider.feature import Known, Shown
from auditor.testing.contract import Contract


def check_feature(cls: type[Any]) -> None:
    """Check a feature family on 300 records of two copies, with blanks.

    Parameters
    ----------
    cls : type
        The class, registered or not.

    Raises
    ------
    ContractError
        A column has another shape than one value a record, is not finite, differs between two
        calls, or changes with an original that the family may not read.
    """
    contract = Contract(cls)
    contract.check_description()
    rng = np.random.default_rng(0)
    x = np.exp(rng.standard_normal((300, 2))).round(2)
    cells = np.exp(rng.standard_normal((300, 2, 2))).round(2)
    cells[:, 0] = np.roll(x, 1, axis=0)
    cells[:30, 1, 0] = np.nan
    every = Known(0, x, x.argsort(axis=0) / 300.0, float(x.min()), x[:, 0] - x[:, 0].mean())
    known, shown, family = every.only(np.arange(0, 300, 2)), Shown(cells), contract.make()
    columns = dict(family.columns(shown, known))
    again = dict(contract.make().columns(shown, known))
    twice = "the same columns in two calls"
    contract.require("deterministic", list(columns) == list(again), twice)
    for name, column in columns.items():
        values = np.asarray(column(shown))
        contract.require(
            "one value a record", values.shape == (300,), f"shape (300,) of {name!r}", values.shape
        )
        contract.require("finite", np.isfinite(values).all(), f"finite values in column {name!r}")
        same = (values == again[name](shown)).all()
        contract.require("deterministic", same, f"{twice}, of {name!r} too")
    if not cls.learns:
        blind = dict(family.columns(shown, known.only(np.arange(0))))
        learns = "`learns = True` of a family whose columns depend on originals"
        contract.require("reads what it states", list(blind) == list(columns), learns)
