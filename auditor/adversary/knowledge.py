"""What an adversary knows besides the copies it holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal


@dataclass(frozen=True)
class Knowledge:
    """Base: a state of knowledge has a name, as in YAML, and a label that tells two uses apart in results."""

    name: ClassVar[str]

    @property
    def label(self) -> str:
        """How results, reports and filters write it."""
        return self.name

    def spec(self) -> Any:
        """Return it as a scenario would spell it."""
        return self.name


@dataclass(frozen=True)
class Perfect(Knowledge):
    """Exact mean and covariance of the table, and the exact law of the noise; for categorical data the exact prior."""

    name = "perfect"


@dataclass(frozen=True)
class UniformPrior(Knowledge):
    """Nothing about categorical data: every value is as likely."""

    name = "uniform-prior"


@dataclass(frozen=True)
class Estimated(Knowledge):
    """The law of the noise, and moments of the data estimated from some released rows (li2012, section 6.1).

    Attributes
    ----------
    rows : int
        How many rows, drawn from the seed, ≥ 2.
    structure : 'scheme' or 'none'
        ``scheme``: one estimate of ``K_X`` and the known levels give every block of the copies' covariance. ``none``: the
        unstructured NM×NM sample covariance of the copies stands for it, as ERRATA says the paper's Fig. 2 must have done.
    """

    name = "estimated"
    rows: int
    structure: Literal["scheme", "none"] = "scheme"

    @property
    def label(self) -> str:
        """``estimated(rows=400)`` or ``estimated(rows=400, structure=none)``."""
        return f"estimated(rows={self.rows}{', structure=none' if self.structure == 'none' else ''})"

    def spec(self) -> Any:
        """Return it as a scenario would spell it."""
        return {"estimated": {"rows": self.rows, "structure": self.structure}}


@dataclass(frozen=True)
class KnownRecords(Knowledge):
    """Some records in clear, matched to their copies, drawn from the seed; and the law of the noise.

    What the adversary was given is no discovery: its errors are measured on the other records only.
    """

    name = "known-records"
    count: int

    @property
    def label(self) -> str:
        """``known-records(10)``."""
        return f"{self.name}({self.count})"

    def spec(self) -> Any:
        """Return it as a scenario would spell it."""
        return {self.name: self.count}


@dataclass(frozen=True)
class UnmatchedRecords(KnownRecords):
    """Some records in clear, without knowing which released rows are theirs."""

    name = "unmatched-records"


@dataclass(frozen=True)
class KnownSample(KnownRecords):
    """Other draws from the population that the table was drawn from."""

    name = "known-sample"


@dataclass(frozen=True)
class KnownAttributes(Knowledge):
    """True values of some attributes of every record under attack, beside all that ``perfect`` knowledge gives.

    Errors of the known attributes are 0, and count as such in the figures over all attributes.
    """

    name = "known-attributes"
    attributes: tuple[str, ...]

    @property
    def label(self) -> str:
        """``known-attributes(age, income)``."""
        return f"{self.name}({', '.join(self.attributes)})"

    def spec(self) -> Any:
        """Return it as a scenario would spell it."""
        return {self.name: list(self.attributes)}


KINDS: dict[str, type[Knowledge]] = {
    cls.name: cls for cls in (Perfect, UniformPrior, Estimated, KnownRecords, UnmatchedRecords, KnownSample, KnownAttributes)
}

EXPECTED = (
    "'perfect', 'uniform-prior', {estimated: {rows: r}}, {known-records: p}, {unmatched-records: p}, {known-sample: size} "
    "or {known-attributes: [names]}"
)
