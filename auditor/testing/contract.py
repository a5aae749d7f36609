"""Contract of all plugins, and the error of a broken contract."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import yaml
from pydantic import ValidationError

from auditor.registry import KINDS, Plugin
from auditor.scenario.yaml.document import load

SEED = 20_090_101
"""Seed of all draws, so that failures repeat."""
READS_ONLY = "leaves what it is shown as it is"
LEVEL = 1e-6
"""Probability per test that an honest scheme fails, over seeds."""


class ContractError(AssertionError):
    """A plugin breaks its contract.

    Attributes
    ----------
    check : str
        Name of the failed check.
    """

    def __init__(self, cls: type[Plugin], check: str, said: str) -> None:
        self.check = check
        super().__init__(
            f"{getattr(cls, 'kind', 'plugin')} {getattr(cls, 'name', cls.__name__)!r} fails the check {check!r}: {said}"
        )


def require(cls: type[Plugin], check: str, holds: object, said: str) -> None:
    """Check a condition.

    Raises
    ------
    ContractError
        It does not hold; ``said`` states expected and found.
    """
    if not holds:
        raise ContractError(cls, check, said)


def wrote(error: BaseException) -> bool:
    """Whether an exception is numpy's refusal to write to a read-only array."""
    return isinstance(error, ValueError) and "read-only" in str(error)


@contextmanager
def nothing_else_raised(cls: type[Plugin], check: str) -> Iterator[None]:
    """Report any exception of a plugin as a broken contract."""
    try:
        yield
    except ContractError:
        raise
    except (Exception, SystemExit) as error:
        check = READS_ONLY if wrote(error) else check
        raise ContractError(
            cls, check, f"expected no error, found {type(error).__name__}: {error}"
        ) from error


def check_plugin(cls: type[Plugin], parameters: Mapping[str, Any] | None = None) -> None:
    """Check a plugin's description and that its parameters are data.

    Parameters
    ----------
    cls : type
        The class, registered or not.
    parameters : mapping, optional
        In scenario spelling; default ``cls.trial``.

    Raises
    ------
    ContractError
        Name, kind or docstring is missing, a parameter has no description, an unknown parameter is
        accepted, or parameters change in a round trip through YAML.
    """
    require(
        cls,
        "named",
        getattr(cls, "kind", None) in KINDS
        and isinstance(getattr(cls, "name", None), str)
        and cls.name,
        f"expected a `name` and one of the kinds {', '.join(KINDS)}, found name {getattr(cls, 'name', None)!r}",
    )
    require(
        cls,
        "documented",
        len(cls.summary()) > 20 and cls.summary().endswith("."),
        f"expected a docstring whose first line is a sentence, as `auditor list` shows it, found {cls.summary()!r}",
    )
    require(
        cls,
        "parameters described",
        cls.Parameters.__doc__,
        "expected a docstring of `Parameters`, found none",
    )
    for field, info in cls.Parameters.model_fields.items():
        require(
            cls,
            "parameters described",
            info.description,
            f"expected a description of the parameter {field!r}, found none",
        )
    given = dict(cls.trial if parameters is None else parameters)
    _unknown_refused(cls, given)
    if (
        parameters is not None
        or cls.trial
        or not any(info.is_required() for info in cls.Parameters.model_fields.values())
    ):
        _survive_yaml(cls, given)


def _unknown_refused(cls: type[Plugin], given: dict[str, Any]) -> None:
    try:
        cls.Parameters.model_validate({**given, "no-such-thing": 1})
    except ValidationError:
        return
    raise ContractError(
        cls,
        "unknown parameters refused",
        "expected an error for the parameter 'no-such-thing', found that it is taken",
    )


def _survive_yaml(cls: type[Plugin], given: dict[str, Any]) -> None:
    plugin = made(cls, given)
    written = plugin.parameters.model_dump(mode="json", by_alias=True)
    try:
        again = cls.Parameters.model_validate(load(yaml.safe_dump(written)).value)
    except ValidationError as error:
        raise ContractError(
            cls,
            "parameters are data",
            f"expected {written} to be taken again from YAML, found that {error}",
        ) from error
    require(
        cls,
        "parameters are data",
        again == plugin.parameters,
        f"expected the same parameters again from YAML, found {again!r} for {plugin.parameters!r}",
    )


def made(cls: type[Any], parameters: Mapping[str, Any] | None = None) -> Any:
    """Return a new plugin with given parameters, by default ``trial``.

    Raises
    ------
    ContractError
        The parameters are refused.
    """
    try:
        return cls(
            cls.Parameters.model_validate(dict(cls.trial if parameters is None else parameters))
        )
    except ValidationError as error:
        said = f"expected parameters to try it with, in its `trial` or from the caller, found that {error}"
        raise ContractError(cls, "can be made", said) from error


def digest(arrays: Iterable[Any]) -> str:
    """Return a SHA-256 over arrays, to detect writes."""
    found = hashlib.sha256()
    for array in arrays:
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()
