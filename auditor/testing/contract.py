"""What holds for a plugin of any kind, and how a broken contract is reported."""

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
"""Of everything that is drawn here: a check that fails does so every time."""
READS_ONLY = "leaves what it is shown as it is"
LEVEL = 1e-6
"""Chance that an honest scheme would be refused, were the seed another."""


class ContractError(AssertionError):
    """A plugin does not keep its contract.

    Attributes
    ----------
    check : str
        Which check failed.
    """

    def __init__(self, cls: type[Plugin], check: str, said: str) -> None:
        self.check = check
        super().__init__(f"{getattr(cls, 'kind', 'plugin')} {getattr(cls, 'name', cls.__name__)!r} fails the check {check!r}: {said}")


def require(cls: type[Plugin], check: str, holds: object, said: str) -> None:
    """Go on if something holds.

    Raises
    ------
    ContractError
        It does not; ``said`` is what was expected, and what was found.
    """
    if not holds:
        raise ContractError(cls, check, said)


def wrote(error: BaseException) -> bool:
    """Whether an exception is numpy's, of somebody who writes to an array that is only to be read."""
    return isinstance(error, ValueError) and "read-only" in str(error)


@contextmanager
def nothing_else_raised(cls: type[Plugin], check: str) -> Iterator[None]:
    """Tell what a plugin raises, where its contract says that it raises nothing, as a broken contract."""
    try:
        yield
    except ContractError:
        raise
    except (Exception, SystemExit) as error:
        check = READS_ONLY if wrote(error) else check
        raise ContractError(cls, check, f"expected no error, found {type(error).__name__}: {error}") from error


def check_plugin(cls: type[Plugin], parameters: Mapping[str, Any] | None = None) -> None:
    """Check what a plugin of any kind says of itself, and that its parameters are data.

    Parameters
    ----------
    cls : type
        The class, registered or not.
    parameters : mapping, optional
        As a scenario spells them; ``cls.trial`` when left out.

    Raises
    ------
    ContractError
        Name, kind or docstring is missing; a parameter is not described; an unknown parameter is taken; parameters written as YAML and
        read again are others.
    """
    require(cls, "named", getattr(cls, "kind", None) in KINDS and isinstance(getattr(cls, "name", None), str) and cls.name,
            f"expected a `name` and one of the kinds {', '.join(KINDS)}, found name {getattr(cls, 'name', None)!r}")  # fmt: skip
    require(cls, "documented", len(cls.summary()) > 20 and cls.summary().endswith("."),
            f"expected a docstring whose first line is a sentence, as `auditor list` shows it, found {cls.summary()!r}")  # fmt: skip
    require(cls, "parameters described", cls.Parameters.__doc__, "expected a docstring of `Parameters`, found none")
    for field, info in cls.Parameters.model_fields.items():
        require(cls, "parameters described", info.description, f"expected a description of the parameter {field!r}, found none")
    given = dict(cls.trial if parameters is None else parameters)
    _unknown_refused(cls, given)
    if parameters is not None or cls.trial or not any(info.is_required() for info in cls.Parameters.model_fields.values()):
        _survive_yaml(cls, given)


def _unknown_refused(cls: type[Plugin], given: dict[str, Any]) -> None:
    try:
        cls.Parameters.model_validate({**given, "no-such-thing": 1})
    except ValidationError:
        return
    raise ContractError(cls, "unknown parameters refused", "expected an error for the parameter 'no-such-thing', found that it is taken")


def _survive_yaml(cls: type[Plugin], given: dict[str, Any]) -> None:
    plugin = made(cls, given)
    written = plugin.parameters.model_dump(mode="json", by_alias=True)
    try:
        again = cls.Parameters.model_validate(load(yaml.safe_dump(written)).value)
    except ValidationError as error:
        raise ContractError(cls, "parameters are data", f"expected {written} to be taken again from YAML, found that {error}") from error
    require(cls, "parameters are data", again == plugin.parameters,
            f"expected the same parameters again from YAML, found {again!r} for {plugin.parameters!r}")  # fmt: skip


def made(cls: type[Any], parameters: Mapping[str, Any] | None = None) -> Any:
    """Return a new plugin with these parameters, or those of ``trial``.

    Raises
    ------
    ContractError
        They are refused.
    """
    try:
        return cls(cls.Parameters.model_validate(dict(cls.trial if parameters is None else parameters)))
    except ValidationError as error:
        said = f"expected parameters to try it with, in its `trial` or from the caller, found that {error}"
        raise ContractError(cls, "can be made", said) from error


def digest(arrays: Iterable[Any]) -> str:
    """Return a SHA-256 over arrays: whether anybody wrote to them."""
    found = hashlib.sha256()
    for array in arrays:
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()
