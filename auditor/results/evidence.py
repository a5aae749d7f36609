"""Evidence that expectations judge, and its exact form in plain JSON values."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, Any, NamedTuple, TypeVar, get_args

from pydantic import GetCoreSchemaHandler, TypeAdapter, ValidationError
from pydantic_core import CoreSchema, core_schema
from typing_extensions import TypedDict

from auditor.base.types import Coalition
from auditor.numerics.statistics import one_sided
from auditor.results.records import Measurement

K = TypeVar("K")
V = TypeVar("V")


class CodecError(ValueError):
    """A value is not of its declared type; the message names types, never a value."""


class _AsPairs:
    """A mapping as a list of pairs, because JSON's keys are text."""

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        pair: Any = tuple.__class_getitem__(get_args(source))
        pairs = handler.generate_schema(list.__class_getitem__(pair))
        written = core_schema.plain_serializer_function_ser_schema(
            lambda mapping: list(mapping.items()), return_schema=pairs
        )
        return core_schema.no_info_after_validator_function(dict, pairs, serialization=written)


Pairs = Annotated[dict[K, V], _AsPairs()]
"""A mapping whose keys are no text."""


@lru_cache(maxsize=128)
def codec(declared: Any) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """Functions that convert values of a type to JSON values and back.

    Types are made of plain JSON types, Literal, lists, tuples, `Pairs`, NamedTuples, dataclasses
    and TypedDicts. ``decode`` raises ``CodecError`` for values that ``encode`` cannot write.
    """
    adapter = TypeAdapter(declared)

    def encode(value: Any) -> Any:
        return adapter.dump_python(value, mode="json", warnings=False)

    def decode(plain: Any) -> Any:
        try:
            return adapter.validate_json(json.dumps(plain), strict=True)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            raise CodecError(f"{first['type']} at {len(first['loc'])} levels below") from None

    return encode, decode


Selector = Callable[[Measurement], bool]


class NoiseGain(NamedTuple):
    """Share of the best copy's noise that a coalition removes.

    ``share`` is the squared multiple correlation of the best copy's noise with the other copies'
    differences from it; 0 by law if one copy is sufficient.
    """

    share: float
    regressors: int
    observations: int


class InsiderGain(NamedTuple):
    """Out-of-sample gain of a learner fitted to the originals.

    Attributes
    ----------
    best : int
        The copy with the least noise.
    copies : tuple of int
        Copies measured, perhaps of a wider coalition with this best copy.
    correlation, std_error, degrees : tuple of float
        By attribute: correlation of the other copies' addition with the best copy's residual; mean
        0 for lawful copies.
    """

    best: int
    copies: Coalition
    correlation: tuple[float, ...]
    std_error: tuple[float, ...]
    degrees: tuple[float, ...]
    rows: int

    @property
    def gain(self) -> tuple[float, ...]:
        """Share of the best copy's error that is removed, by attribute."""
        return tuple(max(r, 0.0) ** 2 for r in self.correlation)

    def p_values(self, place: int, margin: float) -> tuple[float, float]:
        """P-values of one attribute against gain ≥ margin and ≤ margin."""
        r, bound, error, degrees = (
            self.correlation[place],
            math.sqrt(margin),
            self.std_error[place],
            self.degrees[place],
        )
        return one_sided(r, bound, error, degrees), one_sided(-r, -bound, error, degrees)

    def p_value(self, bound: float) -> float:
        """P-value against all gains ≤ bound (Bonferroni over attributes)."""
        return min(
            1.0,
            len(self.gain) * min(self.p_values(place, bound)[1] for place in range(len(self.gain))),
        )


LAST_DIGITS = "last digits"
"""The statistic on the rounding of copies from files."""


class LawTest(NamedTuple):
    """One statistic of noise or replaced values against the stated law.

    Attributes
    ----------
    p : float
        The least p-value times the number of tests, at most 1.
    observed, expected : float
        The figure furthest from its law, and its value by law.
    where : str
        Its copies and attributes.
    telling : float
        Deviations over √rows for a departure of size 1: 1 for a correlation, √2 for a complex one.
    """

    statistic: str
    p: float
    tests: int
    rows: int
    observed: float
    expected: float
    where: str
    telling: float = 1.0
    departure: str = "a correlation"


@dataclass(frozen=True)
class Pooling:
    """Gain of one coalition, without trust in the scheme's statements.

    Attributes
    ----------
    sufficient : bool or None
        Whether one copy is sufficient by the stated law or the shown classes, if any.
    noise : NoiseGain or None
        Of the measured noise, if the law has one shape for all copies.
    unresolved : bool
        Whether second moments lose a combination of the copies.
    by_classes : bool
        Whether ``sufficient`` is about classes, and attacks that read these.
    """

    sufficient: bool | None
    noise: NoiseGain | None = None
    unresolved: bool = False
    insider: InsiderGain | None = None
    proved: bool = True
    by_classes: bool = False

    @property
    def proof(self) -> bool:
        """Whether a law proves sufficiency of one copy for every attack."""
        return self.proved and self.sufficient is not None


PairedCell = tuple[str, str, Coalition, str]
"""Knowledge, attack, coalition, attribute."""
PairedGain = tuple[float, float, float]
"""Gain over the coalition's copy with the least noise by law, standard error and degrees of
freedom."""


class Facts(TypedDict, total=False):
    """Facts about a release beyond its cells.

    ``marginal``: for every copy held, its number, level, p-value of the chi-square test, and
    degrees of freedom. ``drawn``: copies drawn between two others. ``fitted``: parameters fitted
    per attribute, divided by rows, if the law is estimated: an attack's possible advantage.
    ``told``: attacks and knowledge that knew the table's set of values.
    """

    fitted: float
    told: list[tuple[str, str]]
    marginal: list[tuple[int, float, float, int]]
    drawn: list[Drawn]


@dataclass(frozen=True)
class ReleaseEvidence:
    """One audited release: scheme, sweep point and replicate."""

    sweep: dict[str, Any]
    scheme: str
    plugin: str
    copies: int
    replicate: int
    rows: int
    pooling: Pairs[Coalition, Pooling] = field(default_factory=dict)
    paired: Pairs[PairedCell, PairedGain] = field(default_factory=dict)
    facts: Facts = field(default_factory=Facts)
    law: list[LawTest] = field(default_factory=list)
    """Test results by statistic; empty without a stated law."""
    notes: tuple[str, ...] = ()
    """Notes on excluded records and columns."""
    understated: bool = False
    """Whether some of these are less perturbed than the audited ones."""

    @property
    def from_files(self) -> bool:
        """Whether copies come from files, whose law proves nothing."""
        return any(not pooling.proved for pooling in self.pooling.values())


@dataclass(frozen=True)
class Evidence:
    """All evidence for expectations."""

    measurements: Sequence[Measurement]
    releases: Sequence[ReleaseEvidence]


class Drawn(NamedTuple):
    """One copy between two others, over records where these agree.

    ``heads`` and ``tails`` are ``u`` and ``v`` of xiao2009, eqs. 3 and 4, first cases; ``kept`` is
    ``u + v + (1 − u − v)/s``; ``same`` counts records where all three agree.
    """

    copy: int
    heads: float
    tails: float
    kept: float
    agreeing: int
    same: int


FITTED = "fitted-to-originals"
"""Name of the insider attack on copies without a law."""
SAME = 1e-11
"""Smaller gains are rounding errors: the coalition's estimate equals its best copy's, in another
order of sums."""
ROW_REDRAWS = 9
"""Redraws of a release for attacks that need rows. Student's t with 8 degrees of freedom is 18 %
wider than the normal."""
