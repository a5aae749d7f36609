"""Checked arguments of Python calls: levels, bounds and plugin parameters."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from auditor import registry
from auditor.base import AuditorError, Problem, ScenarioError
from auditor.base.types import Options
from auditor.data.table import Bounds, DataUse
from auditor.registry import PluginParameters
from auditor.registry.parameters import Problems, format_path, plain
from auditor.scenario.model import CURRENCIES, ByGuarantee, Levels, parse_levels
from auditor.scenario.stated_levels import level_of
from auditor.schemes.base.additive import AdditiveScheme
from auditor.schemes.base.scheme import Scheme
from auditor.schemes.draw import checked_seed


def parsed_levels(levels: Any) -> Levels:
    """Levels as read; errors as for ``parse_levels``."""
    if isinstance(levels, range) or (hasattr(levels, "tolist") and not np.isscalar(levels)):
        levels = list(levels)
    problems = Problems()
    found = problems.attempt(("levels",), parse_levels, levels)
    _refuse(problems)
    assert found is not None
    return found


def checked_bounds(scheme: Scheme, bounds: Mapping[str, Sequence[float]] | None) -> Bounds:
    """Bounds by column, for schemes of numbers."""
    if not bounds:
        return {}
    problems = Problems()
    use = problems.model((), {"source": "array", "bounds": plain(bounds)}, DataUse)
    if scheme.engine != "numeric":
        why = f"are of columns of numbers, and {scheme.name} perturbs categories"
        problems.add(("bounds",), why)
    _refuse(problems)
    assert use is not None
    return use.bounds


def _refuse(problems: Problems, of: str = "") -> None:
    if problems.found:
        raise ScenarioError(
            Problem(format_path(path), f"{message}{of}") for path, message, _ in problems.found
        )


def checked_levels(
    levels: Any, seed: int | None, scheme: Scheme, bounds: Bounds = MappingProxyType({})
) -> tuple[float, ...]:
    """Levels as noise multiples or probabilities.

    Raises
    ------
    AuditorError
        They are invalid for this scheme; or a guarantee lacks bounds, or has noise of another size.
    """
    asked = parsed_levels(levels)
    if asked.currency not in (None, "scale") and not bounds:
        raise AuditorError(
            f"levels by {asked.currency} need bounds, by how much one record may change, as bounds={{'age': (0, 120)}}"
        )
    if isinstance(asked, ByGuarantee):
        if (
            isinstance(scheme, AdditiveScheme)
            and scheme.parameters.model_dump().get("noise") != CURRENCIES[asked.currency]
        ):
            raise AuditorError(
                f"levels by {asked.currency} say how large the noise is: leave `noise` out when the first copies are made"
            )
        currency, stated = asked.stated
        asked = asked.known(tuple(level_of(scheme, currency, one, bounds) for one in stated))
    resolved = asked.resolve(checked_seed(seed))
    scheme.check_levels(resolved)
    return resolved


def make_plugin(kind: str, name: str, parameters: Options) -> Any:
    """Plugin with checked parameters; names may have hyphens or underscores.

    Raises
    ------
    ScenarioError
        With every parameter that is wrong.
    """
    cls = registry.get(kind, name)
    problems = Problems()
    model = problems.model(
        (),
        {key.replace("_", "-"): _spelt(value) for key, value in parameters.items()},
        cls.Parameters,
    )
    _refuse(problems, f" ({kind} {name!r})")
    assert isinstance(model, PluginParameters)
    return cls(model)


def sized_by(levels: Levels, scheme: str, parameters: Options) -> Options:
    """Parameters with ``noise`` of the size that levels by a guarantee or scale need."""
    if levels.currency is None or not issubclass(registry.get("scheme", scheme), AdditiveScheme):
        return parameters
    return {"noise": CURRENCIES[levels.currency], **parameters}


def _spelt(value: Any) -> Any:
    try:
        return plain(value)
    except ScenarioError:
        return value
