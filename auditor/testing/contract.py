"""Contract of all plugins, and of feature families."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import yaml
from pydantic import ValidationError

from auditor.audit.insider.feature import Known, Shown
from auditor.registry import KINDS, Plugin
from auditor.scenario.yaml_document import load

SEED = 20_090_101
"""Seed of all draws, so that failures repeat."""
READS_ONLY = "leaves what it is shown as it is"
LEVEL = 1e-6
"""Probability per test that an honest scheme fails."""


class ContractError(AssertionError):
    """A plugin breaks its contract.

    Attributes
    ----------
    check
        Name of the failed check.
    """

    def __init__(self, cls: type[Plugin], check: str, said: str) -> None:
        self.check = check
        kind, name = getattr(cls, "kind", "plugin"), getattr(cls, "name", cls.__name__)
        super().__init__(f"{kind} {name!r} fails the check {check!r}: {said}")


class Contract:
    """Checks of one plugin class.

    Parameters
    ----------
    cls
        The class, registered or not.
    parameters
        In scenario spelling; default ``cls.trial``.
    """

    def __init__(self, cls: type[Any], parameters: Mapping[str, Any] | None = None) -> None:
        self.cls = cls
        self.stated = parameters
        self.parameters = dict(cls.trial if parameters is None else parameters)

    def require(self, check: str, holds: object, expected: str, found: object = "others") -> None:
        """Check a condition.

        Raises
        ------
        ContractError
            It does not hold.
        """
        if not holds:
            raise ContractError(self.cls, check, f"expected {expected}, found {found}")

    @contextmanager
    def no_other_error(self, check: str) -> Iterator[None]:
        """Report any exception as a broken contract."""
        try:
            yield
        except ContractError:
            raise
        except (Exception, SystemExit) as error:
            # numpy's message on a read-only array
            wrote = isinstance(error, ValueError) and "read-only" in str(error)
            said = f"expected no error, found {type(error).__name__}: {error}"
            raise ContractError(self.cls, READS_ONLY if wrote else check, said) from error

    def make(self) -> Any:
        """A new plugin.

        Raises
        ------
        ContractError
            The parameters are refused.
        """
        try:
            return self.cls(self.cls.Parameters.model_validate(self.parameters))
        except ValidationError as error:
            said = f"expected parameters to try it with, in its `trial` or from the caller, found that {error}"
            raise ContractError(self.cls, "can be made", said) from error

    def check_description(self) -> None:
        """Check a plugin's description and parameters."""
        cls = self.cls
        name = getattr(cls, "name", None)
        self.require(
            "named",
            getattr(cls, "kind", None) in KINDS and isinstance(name, str) and name,
            f"a `name` and one of the kinds {', '.join(KINDS)}",
            f"name {name!r}",
        )
        summary, fields = cls.summary(), cls.Parameters.model_fields
        self.require(
            "documented",
            len(summary) > 20 and summary.endswith("."),
            "a docstring whose first line is a sentence, as `auditor list` shows it",
            repr(summary),
        )
        described, a_text = "parameters described", "a docstring of `Parameters`"
        self.require(described, cls.Parameters.__doc__, a_text, "none")
        for name, info in fields.items():
            self.require(described, info.description, f"a description of {name!r}", "none")
        self.require(
            "unknown parameters refused",
            not self._is_accepted({**self.parameters, "no-such-thing": 1}),
            "an error for the parameter 'no-such-thing'",
            "that it is taken",
        )
        required = any(info.is_required() for info in fields.values())
        if self.stated is not None or cls.trial or not required:
            given = self.make().parameters
            written = given.model_dump(mode="json", by_alias=True)
            again = load(yaml.safe_dump(written)).value
            self.require(
                "parameters are data",
                self._is_accepted(again) and cls.Parameters.model_validate(again) == given,
                f"{written} to be the same parameters again from YAML",
            )

    def _is_accepted(self, values: Any) -> bool:
        try:
            self.cls.Parameters.model_validate(values)
        except ValidationError:
            return False
        return True


def check_plugin(cls: type[Plugin], parameters: Mapping[str, Any] | None = None) -> None:
    """Check a plugin's description and that its parameters are data.

    Parameters
    ----------
    cls
        The class, registered or not.
    parameters
        In scenario spelling; default ``cls.trial``.

    Raises
    ------
    ContractError
        Name, kind or docstring is missing, a parameter has no description, an unknown parameter is
        accepted, or parameters change in a round trip through YAML.
    """
    Contract(cls, parameters).check_description()


def digest(arrays: Iterable[Any]) -> str:
    """SHA-256 over arrays, to detect writes."""
    found = hashlib.sha256()
    for array in arrays:
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


def check_feature(cls: type[Any]) -> None:
    """Check a feature family on 300 records of two copies, with blanks.

    Parameters
    ----------
    cls
        The class, registered or not.

    Raises
    ------
    ContractError
        A column is not one finite value a record, differs between calls, or changes with an
        original that the family may not read.
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
