"""Which copies one adversary holds: coalitions as a scenario writes them, and the sets they stand for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from auditor.errors import AuditorError, did_you_mean
from auditor.scenario.scalars import whole
from auditor.streams import stream

Coalition = tuple[int, ...]

NAMED = ("singles", "pairs", "prefixes", "all", "subsets")
MOST_COALITIONS = 1_100_000
"""Just over 2²⁰: every subset of 20 copies."""


@dataclass(frozen=True)
class Coalitions:
    """One entry of ``coalitions``.

    Attributes
    ----------
    kind : str
        ``singles``, ``pairs``, ``prefixes`` (copies 1 … j for every j), ``all`` (everybody together), ``subsets`` (every one that
        is not empty), ``copies`` (the ones listed), ``first`` (copies 1 … m) or ``random`` (so many different subsets).
    copies : tuple of int
        For ``copies``.
    count : int
        For ``first`` and ``random``.
    """

    kind: str
    copies: Coalition = ()
    count: int = 0

    def spec(self) -> Any:
        """Return it as a scenario would spell it."""
        if self.kind in NAMED:
            return self.kind
        return {self.kind: list(self.copies) if self.kind == "copies" else self.count}

    def expand(self, M: int, seed: int) -> Iterator[Coalition]:
        """Yield the coalitions among M copies, each ascending.

        Raises
        ------
        AuditorError
            A copy is named that does not exist, or there would be too many coalitions.
        """
        everybody = tuple(range(1, M + 1))
        if self.kind == "singles":
            yield from ((copy,) for copy in everybody)
        elif self.kind == "pairs":
            yield from _limited(combinations(everybody, 2), M * (M - 1) // 2, "pairs", M)
        elif self.kind == "prefixes":
            yield from (everybody[:size] for size in range(1, M + 1))
        elif self.kind == "all":
            yield everybody
        elif self.kind == "subsets":
            subsets = (c for size in range(1, M + 1) for c in combinations(everybody, size))
            yield from _limited(subsets, 2 ** min(M, 10_000) - 1, "subsets", M)
        elif self.kind == "random":
            yield from _random_subsets(M, self.count, seed)
        else:
            yield self._named_copies(M)

    def _named_copies(self, M: int) -> Coalition:
        copies = self.copies if self.kind == "copies" else tuple(range(1, self.count + 1))
        missing = [copy for copy in copies if copy > M]
        if missing:
            raise AuditorError(f"a coalition names copy {missing[0]}, but only {M} copies are released")
        return copies

    def matches(self, coalition: Coalition, M: int) -> bool:
        """Whether a coalition is one of these, for filters; ``random`` matches any."""
        everybody = tuple(range(1, M + 1))
        rules = {
            "singles": len(coalition) == 1,
            "pairs": len(coalition) == 2,
            "prefixes": coalition == everybody[: len(coalition)],
            "all": coalition == everybody,
            "copies": coalition == self.copies,
            "first": coalition == everybody[: self.count],
        }
        return rules.get(self.kind, True)


def _limited(coalitions: Iterable[Coalition], count: int, what: str, M: int) -> Iterator[Coalition]:
    if count > MOST_COALITIONS:
        told = f"{count:,}" if count < 10**9 else f"about 10^{len(str(count)) - 1}" if M < 10_000 else "far too many"
        raise AuditorError(f"{what} of {M} copies are {told} coalitions; at most {MOST_COALITIONS:,} can be audited, try random")
    yield from coalitions


def _random_subsets(M: int, count: int, seed: int) -> Iterator[Coalition]:
    """Yield ``count`` different subsets that are not empty, uniformly, or all there are; the same for every scheme."""
    if M <= 20 and count >= 2**M - 1:
        yield from Coalitions("subsets").expand(M, seed)
        return
    rng = stream(seed, "coalitions", M)
    seen: set[Coalition] = set()
    while len(seen) < count:
        member = rng.random(M) < 0.5
        coalition = tuple(int(copy) + 1 for copy in member.nonzero()[0])
        if coalition and coalition not in seen:
            seen.add(coalition)
            yield coalition


def expand_all(entries: Iterable[Coalitions], M: int, seed: int) -> list[Coalition]:
    """Return every coalition that some entry names, once, by size and then by copy number."""
    found = {coalition for entry in entries for coalition in entry.expand(M, seed)}
    return sorted(found, key=lambda coalition: (len(coalition), coalition))


def parse_coalitions(value: Any) -> Coalitions:
    """Read one entry of ``coalitions``, or a filter's ``coalition``.

    Raises
    ------
    ValueError
        Saying what was expected.
    """
    if isinstance(value, str):
        if value not in NAMED:
            raise ValueError(f"must be one of {', '.join(NAMED)}, {{copies: […]}}, {{first: m}} or {{random: count}}; "
                             f"got {value!r}{did_you_mean(value, NAMED)}")  # fmt: skip
        return Coalitions(value)
    if isinstance(value, (list, tuple)):
        return Coalitions("copies", _copies(value))
    if isinstance(value, dict) and isinstance(value.get("name"), str):  # {name: random, count: 100}
        rest = [argument for key, argument in value.items() if key != "name"]
        return parse_coalitions({value["name"]: rest[0]} if len(rest) == 1 else value["name"] if not rest else list(value))
    if isinstance(value, dict) and len(value) == 1:
        kind, argument = next(iter(value.items()))
        if kind == "copies":
            return Coalitions("copies", _copies(argument))
        if kind in ("first", "random"):
            return Coalitions(kind, count=_count(kind, argument))
    raise ValueError(f"must be one of {', '.join(NAMED)}, {{copies: [1, 3]}}, {{first: m}} or {{random: count}}; got {value!r:.60}")


def _copies(value: Any) -> Coalition:
    valid = isinstance(value, (list, tuple)) and len(value) > 0
    if not valid or not all(isinstance(copy, int) and not isinstance(copy, bool) and copy >= 1 for copy in value):
        raise ValueError(f"needs a list of copy numbers from 1, as {{copies: [1, 3]}}; got {value!r:.60}")
    if len(set(value)) != len(value):
        raise ValueError(f"names a copy twice; got {value!r:.60}")
    return tuple(sorted(value))


def _count(kind: str, value: Any) -> int:
    value = whole(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST_COALITIONS:
        raise ValueError(f"needs a count from 1 to {MOST_COALITIONS:,}, as {{{kind}: 100}}; got {value!r:.60}")
    return value
