"""What pooling categorical copies buys, judged without trusting the scheme: from the originals of records that look alike to a coalition.

An attack that believes the stated law is blind to a scheme that draws otherwise. Every coalition is looked at in these ways (``alike``):

- all its copies by their pattern of agreement, which decides where nearly every record's pattern is shown by others;
- a coalition too wide for that, by every three of its copies with the best among them (beyond 33 copies, by the best with each two of
  neighbouring levels), where each must show no gain; the whole may still refute;
- all its copies by the values they show, which sees leaks that treat values differently; where many records look like no other it can
  only refute.

Not covered: in coalitions judged by threes, leaks that show in no three copies; and leaks that treat values differently where records
are too few.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray

from auditor.blocks import JACKKNIFE_GROUPS
from auditor.categorical.alike import MOST_LABELLED, NOTHING, Alike, blocks_of, by_patterns, by_values, from_patterns, patterns
from auditor.categorical.draws import Codes
from auditor.expectation import Look, Pooling
from auditor.scenario.coalitions import Coalition

MOST_BLIND = 0.001
"""Share of records like no other beyond which a look decides nothing: a tenth of the usual margin."""
MOST_OTHERS = 32
"""Copies beside the best up to which every two of them are looked at with it: 496 threes."""


def _cells_of_bits() -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """Return the five patterns of three copies as ``patterns`` numbers them, and which (pattern, block) six bits mean, shape (64, 20).

    Bits, from the lowest: ``[y_b = x], [y_i = x], [y_i = y_b], [y_j = x], [y_j = y_b], [y_i = y_j]``.
    """
    triples = np.array([(x, b, i, j) for x in range(4) for b in range(4) for i in range(4) for j in range(4)]).T
    x, b, i, j = triples
    bits = np.stack([b == x, i == x, i == b, j == x, j == b, i == j])
    pattern, block = patterns(x, (b, i, j))
    kinds, place = np.unique(pattern, return_inverse=True)
    cell_of = np.zeros((2**6, kinds.size * 4), dtype=np.intp)
    cell_of[np.left_shift(1, np.arange(6)) @ bits, place * 4 + block] = 1
    return kinds, cell_of


KINDS, CELL_OF = _cells_of_bits()


class CoalitionLooks:
    """Looks at coalitions of one release; three copies once, whatever number of coalitions they are in.

    Parameters
    ----------
    x : ndarray of shape (n,)
    size : int
        ``s``.
    copy : callable
        From a copy's number to its values, shape (n,).
    levels : tuple of float
        Retention probabilities as stated.
    """

    def __init__(self, x: Codes, size: int, copy: Callable[[int], Codes], levels: tuple[float, ...]) -> None:
        self._x, self._size, self._copy, self._levels = x, size, copy, levels
        self._count = min(JACKKNIFE_GROUPS, x.size)
        self._groups = np.arange(x.size) % self._count  # interleaved: tables often come sorted
        self._threes: dict[Coalition, Alike] = {}
        self._best, self._seen = 0, dict[int, NDArray[np.uint8]]()

    def evidence(self, coalition: Coalition, sufficient: bool) -> Pooling:
        """Return what pooling buys one coalition of two copies or more; ``sufficient`` is whether its law says nothing."""
        order = sorted(coalition, key=lambda copy: (-self._levels[copy - 1], copy))
        if self._size < 2:
            return Pooling(sufficient, (), (), 1, looks=(Look("patterns", coalition, *NOTHING, guard=False),))
        held = [self._copy(number) for number in order]
        looks = []
        if len(order) <= MOST_LABELLED:
            looks.append(self._look("patterns", coalition, by_patterns(self._x, held, self._size, self._groups)))
            looks.append(self._look("values", coalition, by_values(self._x, held, self._size, self._groups)))
        if sufficient and not any(look.how == "patterns" and not look.guard for look in looks):
            threes = self._threes_of(order)
            looks += [Look("threes", three, *self._three(three), guard=False) for three in threes]
        return Pooling(sufficient, (), (), 1, looks=tuple(look for look in looks if not np.isnan(look.gain)))

    def _look(self, how: str, coalition: Coalition, found: Alike) -> Look:
        narrow = how == "patterns" and len(coalition) <= 3  # nothing smaller to fall back on
        return Look(how, coalition, *found, guard=not narrow and not found.blind <= MOST_BLIND)

    def _threes_of(self, order: list[int]) -> list[Coalition]:
        best, others = order[0], order[1:]
        chosen = combinations(others, 2) if len(others) <= MOST_OTHERS else pairwise(others)
        return [(best, *two) for two in chosen]

    def _three(self, three: Coalition) -> Alike:
        """Look at three copies by their pattern, from bits that each copy has once: ``[y = x]`` and ``[y = y_b]``."""
        if three not in self._threes:
            best, i, j = three
            if best != self._best:
                self._best, self._seen = best, {}
            bits = self._bits(best) | self._bits(i) << 1 | self._bits(j) << 3 | (self._copy(i) == self._copy(j)).view(np.uint8) << 5
            counts = np.bincount((self._groups << 6) + bits, minlength=len(CELL_OF) * self._count).reshape(self._count, -1)
            self._threes[three] = from_patterns((counts @ CELL_OF).reshape(-1, len(KINDS), 4), blocks_of(KINDS, 3), self._size)
        return self._threes[three]

    def _bits(self, number: int) -> NDArray[np.uint8]:
        if number not in self._seen:
            y = self._copy(number)
            right = (y == self._x).view(np.uint8)
            self._seen[number] = right if number == self._best else right | (y == self._copy(self._best)).view(np.uint8) << 1
        return self._seen[number]
