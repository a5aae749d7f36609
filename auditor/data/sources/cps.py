"""Ages, wages and taxes of US households: the nearest that can be had to the papers' Age and Income."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.data.source import Source
from auditor.data.sources._shipped import ShippedNumbers
from auditor.registry import register


@register
class Cps(Source):
    """US Current Population Survey 2012–2014: 193,682 household heads, six attributes; real, CC0.

    Attributes ``age`` (years, 18 to 80, where 80 stands for 80 to 84), ``salary``, ``property_tax``,
    ``mortgage_interest``, ``state_tax`` (dollars a year) and ``household_size``. Some tax and mortgage fields were
    imputed by the makers of the extract. Age and salary correlate by 0.17; salary is right-skewed. Records keep the
    order of the extract, so the first thousands are not a random sample of all.
    """

    name = "cps"
    public = True
    description = (
        "Household heads aged 18–84 with a wage, US Current Population Survey, March supplements 2012–2014, "
        "as distributed with the package taxcalc 6.8.0 (some tax and mortgage fields imputed there)"
    )
    licence = "CC0 1.0"

    def numbers(self, rows: int | None, rng: np.random.Generator) -> Mapping[str, NDArray[Any]]:
        """Return the first ``rows`` records, or all."""
        return ShippedNumbers("cps.parquet", rows)
