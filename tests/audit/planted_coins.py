"""Categorical copies with planted faults that claim the multilevel law.

A fault maps originals, shape (n,), the number of values and a generator to three copies at
``LEVELS``. ``rows(x)`` has, for each record, the place of the record that shares its draws.
"""

import numpy as np

from tests.audit.lying import LEVELS, shares, threes_only


def perturbed(x, size, p, rng):
    """Keep each value with chance p, else draw uniformly."""
    return np.where(rng.random(x.size) < p, x, rng.integers(0, size, x.size))


def later(first, size, rng):
    """Return a first copy with two honest copies made of it."""
    second = perturbed(first, size, 0.5, rng)
    return [first, second, perturbed(second, size, 0.5, rng)]


def honest(x, size, rng):
    return later(perturbed(x, size, 0.5, rng), size, rng)


def first_copy(make):
    """Plant a fault in the first copy: ``make`` returns kept, replacements."""

    def fault(x, size, rng):
        keep, other = make(x, size, rng)
        return later(np.where(keep, x, other), size, rng)

    return fault


def sharing(rows, coins=True, values=True, copies=(0, 1, 2)):
    """Share coins or replacements between records in some copies."""

    def fault(x, size, rng):
        found, before = [], x
        for copy in range(len(LEVELS)):
            taken = rows(x) if copy in copies else np.arange(x.size)
            keep, other = rng.random(x.size) < 0.5, rng.integers(0, size, x.size)
            before = np.where(
                keep[taken] if coins else keep, before, other[taken] if values else other
            )
            found.append(before)
        return found

    return fault


def third_before(x):
    rows = np.arange(x.size)
    return np.where((rows >= 3) & (rows % 6 >= 3), rows - 3, rows)


def with_the_same_value(x):
    """Two records in turn among records with one value."""
    taken, order = np.empty(x.size, dtype=np.intp), np.argsort(x, kind="stable")
    taken[order] = order[np.arange(x.size) // 2 * 2]
    return taken


def history_ignored(x, size, rng):
    return [perturbed(x, size, p, rng) for p in LEVELS]


def rarest_kept_too_often(x, size, rng):
    return rng.random(x.size) < np.where(x == size - 1, 0.75, 0.5), rng.integers(0, size, x.size)


def near_values_replace(x, size, rng):
    keep = rng.random(x.size) < 0.5 + 0.5 / size - 0.5 / 3
    return keep, (x + rng.integers(-1, 2, x.size)) % size


def third_returns_to_the_original(x, size, rng):
    first, second, _ = honest(x, size, rng)
    other = np.where(rng.random(x.size) < 0.1, x, rng.integers(0, size, x.size))
    return [first, second, np.where(rng.random(x.size) < 0.5, second, other)]


def one_in_fifty_unperturbed(x, size, rng):
    first, second, third = honest(x, size, rng)
    return [first, second, np.where(rng.random(x.size) < 0.02, x, third)]


def period_of_differences(x, size, rng):
    copies, before = [], x
    for _ in LEVELS:
        change = np.where(rng.random(4001) < 0.5, 0, rng.integers(0, size, 4001))
        before = (before + np.resize(change, x.size)) % size
        copies.append(before)
    return copies


def coin_of_the_row_before(x, size, rng):
    keep = rng.random(x.size) < 0.5
    keep = np.where(rng.random(x.size) < 0.125, np.roll(keep, 1), keep)
    return keep, rng.integers(0, size, x.size)


def second_has_the_first_s_draws_seven_rows_on(x, size, rng):
    keep, other = rng.random(x.size) < 0.5, rng.integers(0, size, x.size)
    first = np.where(keep, x, other)
    second = np.where(np.roll(keep, 7), first, np.roll(other, 7))
    return [first, second, perturbed(second, size, 0.5, rng)]


def third_kept_by_the_row_before(x, size, rng):
    first, second, _ = honest(x, size, rng)
    kept = np.roll(x, 1) < size // 2
    return [first, second, np.where(kept, second, rng.integers(0, size, x.size))]


def coins_and(other):
    """Keep by a fair coin; ``other`` gives the replacements."""
    return first_copy(lambda x, size, rng: (rng.random(x.size) < 0.5, other(x, size)))


OWN = {
    "more kept further on": first_copy(lambda x, s, rng: (rng.random(x.size) < np.linspace(0.4, 0.6, x.size), rng.integers(0, s, x.size))),
    "three in a hundred more kept": first_copy(lambda x, s, rng: (rng.random(x.size) < 0.53, rng.integers(0, s, x.size))),
    "a tenth kept of what should be redrawn": first_copy(lambda x, s, rng: (rng.random(x.size) < 0.55, rng.integers(0, s, x.size))),
    "history ignored": history_ignored,
    "rarest value kept too often": first_copy(rarest_kept_too_often),
    "near values replace": first_copy(near_values_replace),
    "third returns to the original": third_returns_to_the_original,
    "one in fifty unperturbed": one_in_fifty_unperturbed,
    "only three copies together tell": threes_only,
    "replaced by the original and the second copy": shares,
    "coin of the row before, one in eight": first_copy(coin_of_the_row_before),
}  # fmt: skip
"""Faults of single records."""
SHARED = {
    "a period of differences": period_of_differences,
    "a period": sharing(lambda x: np.arange(x.size) % 4001),
    "a period of replacements": sharing(lambda x: np.arange(x.size) % 4001, coins=False),
    "a period of one copy": sharing(lambda x: np.arange(x.size) % 4001, copies=(1,)),
    "a generator restarts": sharing(lambda x: np.arange(x.size) % 4096),
    "two rows": sharing(lambda x: np.maximum((np.arange(x.size) - 1) // 2 * 2 + 1, 0)),
    "two rows their coins": sharing(lambda x: np.arange(x.size) // 2 * 2, values=False),
    "two rows their replacements": sharing(lambda x: np.arange(x.size) // 2 * 2, coins=False),
    "two rows of one copy": sharing(lambda x: np.arange(x.size) // 2 * 2, copies=(2,)),
    "five rows their replacements": sharing(lambda x: np.arange(x.size) // 5 * 5, coins=False),
    "the third row before": sharing(third_before),
    "turned round": sharing(lambda x: np.minimum(np.arange(x.size), np.arange(x.size)[::-1])),
    "records with the same value": sharing(with_the_same_value),
    "another copy, seven rows on": second_has_the_first_s_draws_seven_rows_on,
    "differences by row number": coins_and(lambda x, s: (x + np.arange(x.size)) % s),
}  # fmt: skip
"""Records that share draws."""
OF_OTHER_ROWS = {
    "replaced by the next row's value": coins_and(lambda x, s: np.roll(x, -1)),
    "moved by the next row's value": coins_and(lambda x, s: (x + np.roll(x, -1)) % s),
    "kept by the row before": third_kept_by_the_row_before,
}
"""Draws that depend on another record's value."""
FAULTS = OWN | SHARED | OF_OTHER_ROWS


def in_a_quarter(fault):
    """Plant a fault in a quarter of the rows, in runs of 250."""

    def some(x, size, rng):
        bad, good = fault(x, size, rng), honest(x, size, rng)
        return [
            np.where(np.arange(x.size) % 1000 < 250, *pair) for pair in zip(bad, good, strict=True)
        ]

    return some
