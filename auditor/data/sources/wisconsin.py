"""Cytology scores of breast tumours, like the papers' Wisconsin data."""

from __future__ import annotations

import numpy as np

from auditor.data.source import Source
from auditor.data.sources._shipped import shipped
from auditor.process.deferred import pd
from auditor.registry import register


@register
class Wisconsin(Source):
    """Original Wisconsin breast cancer data (W. H. Wolberg, 1992).

    Real, CC BY 4.0: 699 records, nine scores 1 to 10. 16 values of ``bare_nuclei`` are missing, so
    use ``missing: drop`` or ``missing: mean``, or choose other columns. The class ``diagnosis``
    (458 benign, 241 malignant) is text and excluded by default.
    """

    name = "wisconsin"
    public = True
    description = (
        "Wisconsin breast cancer data (original), W. H. Wolberg, University of Wisconsin Hospitals, 1992; "
        "UCI Machine Learning Repository"
    )
    licence = "CC BY 4.0"
    labels = ("diagnosis",)

    def frame(self, rows: int | None, rng: np.random.Generator) -> pd.DataFrame:
        """Return the first ``rows`` records, or all."""
        return shipped("wisconsin_original.csv", rows)
