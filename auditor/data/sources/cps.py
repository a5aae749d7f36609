"""Ages, wages and taxes of US households, similar to the papers' data."""

from __future__ import annotations

import numpy as np

from auditor.data.source import Outline, Source
from auditor.process.deferred import pd
from auditor.registry import register

COLUMNS = ("age", "salary", "property_tax", "mortgage_interest", "state_tax", "household_size")
ROWS = 193_682
MEAN = (
    41.40269617207588,
    58802.037974618186,
    1396.424918164827,
    4831.300611311325,
    1950.2930370400966,
    2.148991646100309,
)
COVARIANCE = (
    (
        202.48586193894602,
        188828.08364313492,
        8514.98088365328,
        8140.527699119037,
        9235.37378060975,
        0.8906268861453641,
    ),
    (
        188828.08364313492,
        5758291512.936585,
        62093060.52486409,
        221259565.37430945,
        268906663.53351736,
        26089.422564649492,
    ),
    (
        8514.98088365328,
        62093060.52486409,
        1875868.8751595912,
        5969055.305480064,
        2878206.036628828,
        559.4613445571483,
    ),
    (
        8140.527699119037,
        221259565.37430945,
        5969055.305480064,
        23804465.910123333,
        9818960.772805447,
        2519.143045091382,
    ),
    (
        9235.37378060975,
        268906663.53351736,
        2878206.036628828,
        9818960.772805447,
        20369259.854319915,
        791.4997925988679,
    ),
    (
        0.8906268861453641,
        26089.422564649492,
        559.4613445571483,
        2519.143045091382,
        791.4997925988679,
        1.8015176839793239,
    ),
)
"""Moments of the whole file, rounded once (tests/data/test_data_sources.py recomputes them)."""


@register
class Cps(Source):
    """US Current Population Survey 2012–2014: 193,682 household heads.

    Real, CC0. Six attributes: ``age`` (years, 18 to 80, where 80 means 80 to 84), ``salary``,
    ``property_tax``, ``mortgage_interest``, ``state_tax`` (dollars per year) and
    ``household_size``. Some tax and mortgage fields were imputed by the makers of the extract. Age
    and salary correlate by 0.17; salary is right-skewed. Records keep the order of the extract, so
    the first thousands are not a random sample of all.
    """

    name = "cps"
    public = True
    description = (
        "Household heads aged 18–84 with a wage, US Current Population Survey, March supplements 2012–2014, "
        "as distributed with the package taxcalc 6.8.0 (some tax and mortgage fields imputed there)"
    )
    licence = "CC0 1.0"

    def frame(self, rows: int | None, rng: np.random.Generator) -> pd.DataFrame:
        """Return the first ``rows`` records, or all."""
        # for start-up: an outline reads no data
        from auditor.data.sources._shipped import shipped

        return shipped("cps.parquet", rows)

    def outline(self, rows: int | None) -> Outline | None:
        """Return the moments of all records; None for fewer."""
        if rows is not None and rows < ROWS:
            return None
        return Outline(COLUMNS, ROWS, np.array(MEAN), np.array(COVARIANCE))
