"""Coalitions: sets of copies that one adversary holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Any

from auditor.base.errors import AuditorError
from auditor.base.types import Coalition
from auditor.numerics.random_streams import stream

NAMED = ("singles", "pairs", "prefixes", "all", "subsets")
MOST_COALITIONS = 1_100_000
"""Just over 2²⁰: every subset of 20 copies."""


@dataclass(frozen=True)
class Coalitions:
    """One entry of ``coalitions``.

    Attributes
    ----------
    kind
        ``singles``, ``pairs``, ``prefixes`` (copies 1 … j for every j), ``all``, ``subsets``
        (nonempty), ``copies`` (a list), ``first`` (copies 1 … m) or ``random`` (distinct subsets).
    copies
        For ``copies``.
    count
        For ``first`` and ``random``.
    """

    kind: str
    copies: Coalition = ()
    count: int = 0

    def spec(self) -> Any:
        """Scenario's spelling."""
        if self.kind in NAMED:
            return self.kind
        return {self.kind: list(self.copies) if self.kind == "copies" else self.count}

    def expand(self, M: int, seed: int) -> Iterator[Coalition]:
        """Yield the coalitions among M copies, each ascending.

        ``AuditorError`` for unknown copies, or too many coalitions.
        """
        everybody = tuple(range(1, M + 1))
        if self.kind in ("pairs", "subsets"):
            self._check_count(M)
            sizes = (2,) if self.kind == "pairs" else everybody
            yield from (held for size in sizes for held in combinations(everybody, size))
        elif self.kind == "singles":
            yield from ((copy,) for copy in everybody)
        elif self.kind == "prefixes":
            yield from (everybody[:size] for size in range(1, M + 1))
        elif self.kind == "all":
            yield everybody
        elif self.kind == "random":
            yield from _random_subsets(M, self.count, seed)
        else:
            copies = self.copies if self.kind == "copies" else tuple(range(1, self.count + 1))
            if missing := [copy for copy in copies if copy > M]:
                raise AuditorError(
                    f"a coalition names copy {missing[0]}, but only {M} copies are released"
                )
            yield copies

    def size(self, M: int) -> int:
        """Number of coalitions among M copies."""
        subsets = int(2**M) - 1
        sizes = {"singles": M, "pairs": M * (M - 1) // 2, "prefixes": M, "subsets": subsets}
        return min(self.count, subsets) if self.kind == "random" else sizes.get(self.kind, 1)

    def _check_count(self, M: int) -> None:
        count = self.size(min(M, 10_000))
        if count > MOST_COALITIONS:
            number = f"{count:,}" if count < 10**9 else f"about 10^{len(str(count)) - 1}"
            raise AuditorError(
                f"{self.kind} of {M} copies are {number if M < 10_000 else 'far too many'} coalitions; "
                f"at most {MOST_COALITIONS:,} can be audited, try random"
            )

    def matches(self, coalition: Coalition, M: int) -> bool:
        """Whether a coalition is included; ``random`` matches any."""
        if self.kind in ("singles", "pairs"):
            return len(coalition) == (1 if self.kind == "singles" else 2)
        if self.kind == "copies":
            return coalition == self.copies
        sizes = {"prefixes": min(len(coalition), M), "all": M, "first": min(self.count, M)}
        return self.kind not in sizes or coalition == tuple(range(1, sizes[self.kind] + 1))


def _random_subsets(M: int, count: int, seed: int) -> Iterator[Coalition]:
    """Yield uniform distinct nonempty subsets, equal for every scheme."""
    if M <= 20 and count >= 2**M - 1:
        yield from Coalitions("subsets").expand(M, seed)
        return
    rng = stream(seed, "coalitions", M)
    seen: set[Coalition] = set()
    while len(seen) < count:
        coalition = tuple(int(copy) + 1 for copy in (rng.random(M) < 0.5).nonzero()[0])
        if coalition and coalition not in seen:
            seen.add(coalition)
            yield coalition


def expand_all(entries: Iterable[Coalitions], M: int, seed: int) -> list[Coalition]:
    """All distinct coalitions, by size and then by copy number."""
    return list(_expanded(tuple(entries), M, seed))


@lru_cache(maxsize=2)
def _expanded(entries: tuple[Coalitions, ...], M: int, seed: int) -> tuple[Coalition, ...]:
    """Cached: half a million subsets need a second."""
    found = {coalition for entry in entries for coalition in entry.expand(M, seed)}
    return tuple(sorted(found, key=lambda coalition: (len(coalition), coalition)))
