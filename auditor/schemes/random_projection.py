"""Random projection: records multiplied by one secret normal matrix.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``n'`` | columns of a copy, ``dimensions`` | scalar | |
| ``M`` | independent N(0, σ²) entries; σ² = 1/n' by default | (n', N) | liu2008, section 4 |
| ``E‖M(x − x')‖²`` | ``σ² n' ‖x − x'‖²`` | scalar | |
| ``C`` | orthonormal cosine transform (DCT-II) across a record's attributes | (N, N) | mukherjee2006 |

``matrix: dct`` keeps the n' cosine coefficients with the largest mean square over the table, in a
secret order.

A smaller n' preserves distances less and discloses less: with n' < N no adversary can invert the
map for all records. Each known record removes one more dimension of uncertainty. Several copies
have independent matrices, so collusion stacks them to one projection with ``Σ n'`` rows.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, model_validator

from auditor.errors import AuditorError
from auditor.numerics.random_streams import Rng
from auditor.process.deferred import scipy
from auditor.registry import PluginParameters, register
from auditor.schemes.base.multiplicative import TransformScheme
from auditor.schemes.base.scheme import TableMoments
from auditor.schemes.base.transform import Transform
from auditor.types import Array


@register
class RandomProjection(TransformScheme):
    """One secret random projection to n' dimensions. Broken by collusion.

    Distances are preserved on average.
    """

    name = "random-projection"
    family = "random-projection"
    claims = "Nothing under collusion: copies stack into one projection with more rows."
    reference = "liu2008, section 4, eq. 12.4"
    assumes = (
        "The adversary knows fewer records than dimensions, and recipients never pool their copies."
    )
    trial = MappingProxyType({"dimensions": 2, "copies": 3})
    other_trials = (MappingProxyType({"dimensions": 2, "copies": 3, "matrix": "dct"}),)

    class Parameters(PluginParameters):
        """Size and kind of the matrix, and number of copies."""

        dimensions: int = Field(ge=1, le=10_000, description="columns n' of a copy")
        variance: Annotated[float, Field(gt=0)] | None = Field(
            None,
            description="variance σ² of the entries, no unit; by default 1/n', which keeps squared distances on average",
        )
        matrix: Literal["gaussian", "dct"] = Field(
            "gaussian", description="normal entries, or a truncated cosine transform"
        )
        copies: int = Field(1, ge=1, le=1000, description="copies, each with a matrix of its own")

        @model_validator(mode="after")
        def _no_entries(self) -> Any:
            if self.matrix == "dct" and self.variance is not None:
                raise ValueError(
                    "gives a variance for the entries of a cosine transform, which has none to draw"
                )
            return self

    @property
    def public(self) -> dict[str, Any]:
        own = self.parameters
        return super().public | {
            "variance": own.variance if own.variance is not None else 1.0 / own.dimensions
        }

    def output_width(self, width: int) -> int:
        return int(self.parameters.dimensions)

    def draw(self, table: TableMoments, rng: Rng) -> Transform:
        """Return the matrix of one copy.

        Raises
        ------
        AuditorError
            A cosine transform has more coefficients than attributes.
        """
        N, size = table.mean.size, int(self.parameters.dimensions)
        if self.parameters.matrix == "dct":
            return Transform(truncated_dct(table, size, rng), np.zeros(size))
        return Transform(
            rng.standard_normal((size, N)) * np.sqrt(self.public["variance"]), np.zeros(size)
        )


def truncated_dct(table: TableMoments, size: int, rng: Rng) -> Array:
    """Return n' rows of the orthonormal DCT-II, shuffled, shape (size, N).

    The coefficients of largest mean square.

    Raises
    ------
    AuditorError
        ``size`` is above N.
    """
    N = table.mean.size
    if size > N:
        raise AuditorError(
            f"dimensions: a cosine transform of {N} attributes has {N} coefficients; got {size}"
        )
    C = cosine_transform(N)
    energy = np.diag(C @ (table.covariance + np.outer(table.mean, table.mean)) @ C.T)
    kept = np.argsort(-energy, kind="stable")[:size]
    return np.asarray(C[rng.permutation(kept)])


def cosine_transform(N: int) -> Array:
    """Return the orthonormal DCT-II, shape (N, N): coefficients are ``C x``."""
    return np.asarray(scipy.fft.dct(np.eye(N), norm="ortho", axis=0))
