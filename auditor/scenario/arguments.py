"""Checked arguments of Python calls, and levels by guarantees or in data units.

| levels | stated quantity | noise at level 1 | level |
| --- | --- | --- | --- |
| ``{epsilon: [ε, …]}`` | pure ε of each copy alone | ``K_0 = diag(Δ²)`` | of Laplace noise ``2 N²/ε²`` |
| ``{gaussian-dp: [μ, …]}`` | μ of each copy alone | ``K_0 = diag(Δ²)`` | of Gaussian noise ``N/μ²`` |
| ``{scale: [b, …]}`` | scale b of Laplace or geometric noise, else deviation, in data units | ``K_0 = I`` | ``2 b²``, or ``b²`` |

``Δ`` is the largest change of one record, from ``data: bounds:``. Noise is independent of the
table, so levels disclose no record.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import exp, isclose, isinf, log, sinh
from types import MappingProxyType
from typing import Any

import numpy as np

from auditor import registry
from auditor.base import AuditorError, Problem, ScenarioError
from auditor.base.types import Array, Names, Options
from auditor.data.table import Bounds, DataUse, spans
from auditor.numerics.statistics import root
from auditor.process.containment import contained
from auditor.registry import PluginParameters
from auditor.registry.parameters import Problems, format_path, plain
from auditor.scenario.model import CURRENCIES, ByGuarantee, Levels, SchemeUse, parse_levels
from auditor.schemes.base.guarantees import Figure, Guarantees
from auditor.schemes.base.noise_density import LATTICE
from auditor.schemes.base.noise_law import KroneckerNoise
from auditor.schemes.base.scheme import Scheme
from auditor.schemes.corner_wave import AdditiveScheme
from auditor.schemes.draw import checked_seed

METRIC = {"epsilon": "epsilon", "gaussian-dp": "gaussian_dp"}
WIDEST = log(1e60)
"""Largest absolute logarithm of a level in the search."""
SMALLEST = 1e-200
"""Smallest guarantee figure in the search; the largest is its inverse."""
ANY_DELTA = 1.0 - 1e-15
"""ε and μ do not depend on δ, quickest near 1."""


def with_stated_levels(
    schemes: Sequence[SchemeUse], data: DataUse | None, problems: Problems
) -> tuple[SchemeUse, ...]:
    """Return uses of schemes with levels as noise multiples; report errors."""
    made = []
    for place, use in enumerate(schemes):
        levels = use.levels
        if isinstance(levels, ByGuarantee) and data is not None:
            with contained() as failure:
                scheme = registry.get("scheme", use.name)(use.parameters)
                currency, stated = levels.stated
                values = tuple(level_of(scheme, currency, one, data.bounds) for one in stated)
                scheme.check_levels(values)
                use = replace(use, levels=levels.known(values))
            if failure.error is not None:
                path = ("schemes", place, "levels", levels.currency)
                problems.add(path, f"cannot be used: {failure.reason}")
        made.append(use)
    return tuple(made)


def level_of(scheme: Any, currency: str, stated: float, bounds: Bounds) -> float:
    """Noise multiple of one copy for a scale, an ε or a μ.

    Raises
    ------
    AuditorError
        No noise of this law attains it, or a required statement is missing.
    """
    if not isinstance(scheme, AdditiveScheme):  # rotations have another parameter `noise`
        raise AuditorError(f"{scheme.name} adds no noise whose size could be stated so")
    if currency == "scale":
        level = _level_of_scale(scheme, stated, _units(scheme, 1, ("",)))
        if level == 0.0:
            raise AuditorError(f"no noise that can be computed with has scale {stated:g}")
        return level
    changes = spans(tuple(bounds), bounds)
    if changes is None:
        raise AuditorError(
            "there are no bounds; say under `data:` by how much one record may change, as `bounds: {age: [0, 120]}`"
        )
    return _level_of_guarantee(
        scheme, METRIC[currency], stated, changes, _units(scheme, len(changes), tuple(bounds))
    )


def _units(scheme: AdditiveScheme, width: int, names: Names) -> Array | None:
    if scheme.distribution not in LATTICE:
        return None
    unit = getattr(scheme.parameters, "unit", None)
    by_column = unit if isinstance(unit, dict) else dict.fromkeys(names, unit)
    found = [float(one) for one in map(by_column.get, names) if one is not None]
    if len(found) < width:
        raise AuditorError(
            f"{scheme.name} needs `unit`, the step of its values, to convert levels without the table"
        )
    return np.array(found)


def _level_of_scale(scheme: AdditiveScheme, scale: float, units: Array | None) -> float:
    if scheme.distribution == "laplace":
        return 2.0 * scale**2
    if scheme.distribution == "geometric":
        assert units is not None
        rate = float(units[0]) / scale  # ln 1/q; 2q/(1 − q)² = 1/(2 sinh²(rate/2))
        return float(units[0] ** 2 / (2.0 * sinh(rate / 2.0) ** 2)) if rate < 1400.0 else 0.0
    return scale**2


def _level_of_guarantee(
    scheme: AdditiveScheme, metric: str, stated: float, changes: Array, units: Array | None
) -> float:
    if scheme.public.get("serial", "none") != "none":
        raise AuditorError(
            "levels by guarantee are not found for noise that follows on from record to record; state noise multiples"
        )

    def at(log_level: float) -> Figure:
        law = KroneckerNoise(
            np.array([[exp(log_level)]]),
            np.diag(changes**2),
            distribution=scheme.distribution,
            one_process=True,
            units=units,
        )
        return Guarantees(law, changes, ANY_DELTA).of([1])[metric]

    most = at(WIDEST)
    if isinf(most.value):
        raise AuditorError(f"no noise of this law keeps any: {metric} is {most.note}")

    # μ of Skellam noise is not computed at the lowest levels
    def kept(log_level: float) -> float:
        return log(min(max(at(log_level).value, SMALLEST), 1.0 / SMALLEST)) - log(stated)

    try:
        level = root(kept, -WIDEST, WIDEST)
        if not isclose(at(level).value, stated, rel_tol=1e-6):
            raise ValueError("a jump, beyond which μ is not computed")
    except (ValueError, OverflowError):
        raise AuditorError(
            f"no noise that can be computed with keeps {metric} {stated:g}"
        ) from None
    return exp(level)


# -- arguments of the Python API -------------------------------------------------------------------


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
        problems.add(
            ("bounds",), f"are of columns of numbers, and {scheme.name} perturbs categories"
        )
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
