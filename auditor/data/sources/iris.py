"""Fisher's iris, from scikit-learn: four correlated lengths."""

from __future__ import annotations

import numpy as np

from auditor.data.source import Source
from auditor.process.deferred import pd
from auditor.registry import register

LENGTHS = ("sepal_length", "sepal_width", "petal_length", "petal_width")


@register
class Iris(Source):
    """Fisher's iris (1936): 150 flowers, four lengths in centimetres.

    Real; three species of 50 each. Records are sorted by species, so the first 50 are of one. The
    class ``species`` is text and excluded by default.
    """

    name = "iris"
    public = True
    reference = "R. A. Fisher, The use of multiple measurements in taxonomic problems, Annals of Eugenics 7 (1936)"
    description = "Iris plants, R. A. Fisher 1936, as distributed with scikit-learn"
    licence = "CC BY 4.0 (UCI Machine Learning Repository); BSD 3-Clause (scikit-learn)"
    labels = ("species",)

    def frame(self, rows: int | None, rng: np.random.Generator) -> pd.DataFrame:
        """Return the first ``rows`` records, or all."""
        # here, since the import needs a second and all sources are imported
        from sklearn.datasets import load_iris

        bunch = load_iris()
        frame = pd.DataFrame(bunch.data, columns=list(LENGTHS))
        frame["species"] = [str(bunch.target_names[code]) for code in bunch.target]
        return frame if rows is None else frame.head(rows)
