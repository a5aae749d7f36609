"""Request for advice, and its limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from auditor.data.bounds import Bounds
from auditor.errors import AuditorError

MOST_COPIES = 50
"""The audit of more would take hours."""
LARGEST_SPREAD = 1e6
USES = {
    "mean": "how much the standard error of a mean grows",
    "regression": "R² lost by regressions of each attribute on the others that are fitted to a copy",
    "share": "how much the standard error of a category's share grows",
    "classifier": "accuracy lost by a decision tree that is trained on a copy",
}
"""Measures of the loss of use."""


@dataclass(frozen=True)
class Request:
    """Request for advice.

    Attributes
    ----------
    data : str
        A path or a registered source.
    copies : int
    unknown : float
        Target: share of every attribute's variance to stay unknown, in (0, 1).
    utility : str
        ``mean``, ``regression`` or ``classifier``, which predicts the column ``target``.
    schemes : tuple of str
        To compare; by default the schemes that add Gaussian noise to numbers.
    columns : tuple of str, optional
    rows : int, optional
        Records to measure.
    spread : float
        Ratio of the last copy's perturbation to the first; the others in equal ratios between.
    seed : int
        Of the noise in audits, never of a release.
    parameters : mapping
        Of every scheme.
    bounds : mapping
        Column → (low, high) of one record: they size the noise, and releases get their ε.
    delta : float
        δ of noise without a pure ε, in (0, 1).
    epsilon : float, optional
        The largest ε of all copies together.
    """

    data: str
    copies: int
    unknown: float
    utility: str = "mean"
    target: str | None = None
    schemes: tuple[str, ...] = ()
    columns: tuple[str, ...] | None = None
    rows: int | None = None
    spread: float = 4.0
    seed: int = 1
    parameters: Mapping[str, Any] = field(default_factory=dict)
    bounds: Bounds = field(default_factory=dict)
    delta: float = 1e-5
    epsilon: float | None = None

    def check(self) -> None:
        """Refuse impossible requests.

        Raises
        ------
        AuditorError
            With the valid range.
        """
        if not 0.0 < self.unknown < 1.0:
            why = "; whatever is released tells something" if self.unknown >= 1.0 else ""
            raise AuditorError(
                f"--unknown must be a share above 0 and below 1, as 0.5 for half; got {self.unknown:g}{why}"
            )
        if not 1 <= self.copies <= MOST_COPIES:
            why = (
                "; of a lossless scheme further copies, noisier than the first, tell nobody more"
                if self.copies > MOST_COPIES
                else ""
            )
            raise AuditorError(
                f"--copies must be from 1 to {MOST_COPIES}; got {self.copies:,}{why}"
            )
        if not 1.0 <= self.spread <= LARGEST_SPREAD:
            raise AuditorError(
                f"--spread must be a ratio from 1 to {LARGEST_SPREAD:,.0f}; got {self.spread:g}"
            )
        if self.bounds and "noise" in self.parameters:
            raise AuditorError(
                "--bounds sizes the noise, so that ε hangs on no table; leave --param noise out"
            )
        if self.epsilon is not None and not (self.bounds and self.epsilon > 0.0):
            raise AuditorError(
                "--epsilon must be a number above 0, and needs --bounds of every column, as age=0:120"
            )
        if not 0.0 < self.delta < 1.0:
            raise AuditorError(f"--delta must be a chance above 0 and below 1; got {self.delta:g}")
        if (self.utility == "classifier") != (self.target is not None):
            raise AuditorError(
                "--utility classifier needs --target, the column to predict; nothing else takes one"
            )
