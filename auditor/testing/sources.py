"""The contract of sources: a table of named columns, the same for the same seed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from auditor.data.source import Source
from auditor.process.deferred import pd
from auditor.testing.contract import SEED, check_plugin, made, nothing_else_raised, require

ROWS = 60


def check_source(cls: type[Source], parameters: Mapping[str, Any] | None = None) -> None:
    """Check that a source keeps its contract.

    Parameters
    ----------
    cls : type
        The source's class, registered or not.
    parameters : mapping, optional
        As a scenario spells them; ``cls.trial`` when left out.

    Raises
    ------
    ContractError
        Naming the check. Beside those of ``check_plugin``: ``describes its data``, ``a table``, ``unique names``, ``as many rows as
        asked``, ``same seed, same table``, ``finite``, ``labels and domains``.

    Notes
    -----
    Values may be missing; what becomes of them is for the scenario to say.
    """
    check_plugin(cls, parameters)
    require(cls, "describes its data", cls.description, "expected a `description` of the data, found none")
    frame = _frame(cls, parameters, SEED)
    require(cls, "a table", isinstance(frame, pd.DataFrame), f"expected `frame` to return a DataFrame, found a {type(frame).__name__}")
    require(cls, "a table", frame.shape[0] >= 2 and frame.shape[1] >= 1, f"expected two records or more, found shape {frame.shape}")
    names = [str(name) for name in frame.columns]
    require(cls, "unique names", len(set(names)) == len(names) and all(names), f"expected names, each once, found {names}")
    width = made(cls, parameters).width()
    asked = len(frame) == ROWS if width else len(frame) <= ROWS
    require(cls, "as many rows as asked", asked, f"expected {'' if width else 'at most '}{ROWS} records, found {len(frame)}")
    require(cls, "as many rows as asked", not width or width == frame.shape[1],
            f"expected {width} columns, as `width` says, found {frame.shape[1]}")  # fmt: skip
    numbers = frame.select_dtypes("number")
    infinite = [str(name) for name in numbers if np.isinf(numbers[name].to_numpy(dtype=np.float64, na_value=np.nan)).any()]
    require(cls, "finite", not infinite, f"expected finite numbers, found infinite ones in the columns {infinite}")
    again = _frame(cls, parameters, SEED)
    require(cls, "same seed, same table", frame.equals(again), "expected the same table from the same seed, found another")
    _labels(cls, made(cls, parameters), frame)


def _frame(cls: type[Source], parameters: Mapping[str, Any] | None, seed: int) -> Any:
    with nothing_else_raised(cls, "a table"):
        return made(cls, parameters).frame(ROWS, np.random.default_rng(seed))


def _labels(cls: type[Source], source: Source, frame: pd.DataFrame) -> None:
    unknown = {*cls.labels, *source.domains()} - set(frame.columns)
    require(cls, "labels and domains", not unknown, f"expected `labels` and `domains` of its own columns, found {sorted(unknown)}")
    for name, domain in source.domains().items():
        inside = frame[name].dropna().isin(domain).all()
        require(cls, "labels and domains", inside, f"expected every value of {name!r} in its domain, found others")
