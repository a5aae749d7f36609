"""What a feature family must keep: columns of one number a record, the same for the same cells, that see no held-out original."""

from __future__ import annotations

from typing import Any

import numpy as np

from auditor.audit.insider.feature import Feature, Known, Shown
from auditor.testing.contract import check_plugin, made, require


def check_feature(cls: type[Any]) -> None:
    """Check a feature family on 300 records of two copies of two attributes, with blanks.

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
    check_plugin(cls)
    rng = np.random.default_rng(0)
    x, cells = (
        np.exp(rng.standard_normal((300, 2))).round(2),
        np.exp(rng.standard_normal((300, 2, 2))).round(2),
    )
    cells[:, 0] = np.roll(x, 1, axis=0)
    cells[:30, 1, 0] = np.nan
    known = Known(0, x, x.argsort(axis=0) / 300.0, float(x.min()), x[:, 0] - x[:, 0].mean()).only(
        np.arange(0, 300, 2)
    )
    family: Feature = made(cls)
    columns, again = (
        dict(family.columns(Shown(cells), known)),
        dict(made(cls).columns(Shown(cells), known)),
    )
    require(
        cls,
        "deterministic",
        list(columns) == list(again),
        "expected the same names of columns in two calls",
    )
    for name, column in columns.items():
        values = np.asarray(column(Shown(cells)))
        require(
            cls,
            "one value a record",
            values.shape == (300,),
            f"expected shape (300,) of column {name!r}, found {values.shape}",
        )
        require(
            cls, "finite", np.isfinite(values).all(), f"expected finite values in column {name!r}"
        )
        require(
            cls,
            "deterministic",
            (values == again[name](Shown(cells))).all(),
            f"expected the same values of column {name!r} twice",
        )
    if not cls.learns:
        blind = known.only(np.arange(0))
        require(
            cls,
            "reads what it states",
            list(dict(family.columns(Shown(cells), blind))) == list(columns),
            "expected `learns = True` of a family whose columns depend on originals",
        )
