"""Exponents of cost: least squares on logarithms, with standard errors."""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt


@dataclass(frozen=True)
class Curve:
    """Cost against one size, all else fixed.

    Attributes
    ----------
    variable, setting, against : str
        What varies, what is fixed, and the unit of cost.
    sizes, costs : tuple of float
        Medians of ratios to the unit, measured in the same rounds.
    at_most : float or None
        The bar for the exponent.
    """

    variable: str
    setting: str
    against: str
    sizes: tuple[float, ...]
    costs: tuple[float, ...]
    at_most: float | None = None

    @property
    def fitted(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """The larger half of the sizes, where what does not grow counts least."""
        first = len(self.sizes) // 2
        return self.sizes[first:], self.costs[first:]

    @property
    def exponent(self) -> tuple[float, float]:
        return exponent(*self.fitted)


def exponent(sizes: tuple[float, ...], costs: tuple[float, ...]) -> tuple[float, float]:
    """Return b and its standard error in ``cost ≈ a·size^b``, by least squares on logarithms.

    Examples
    --------
    >>> exponent((1.0, 2.0, 4.0), (3.0, 12.0, 48.0))
    (2.0, 0.0)
    """
    x, y = [log(size) for size in sizes], [log(cost) for cost in costs]
    n, x_mean, y_mean = len(x), sum(x) / len(x), sum(y) / len(y)
    spread = sum((u - x_mean) ** 2 for u in x)
    b = sum((u - x_mean) * (v - y_mean) for u, v in zip(x, y, strict=True)) / spread
    left = sum((v - y_mean - b * (u - x_mean)) ** 2 for u, v in zip(x, y, strict=True))
    return b, sqrt(max(0.0, left) / (n - 2) / spread)
