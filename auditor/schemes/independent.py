"""Independent and linearly dependent noise, both broken by pooling.

| scheme | ``Sigma`` | ``K_0`` by default | source |
| --- | --- | --- | --- |
| ``independent`` | ``diag(σ_1² … σ_M²)`` | ``(tr K_X / N)·I``: white noise | li2012, Theorem 3; huang2005, section 4 |
| ``correlated`` | ``diag(σ_1² … σ_M²)`` | ``K_X``: no filter separates noise and data | huang2005, section 8 |
| ``linearly-dependent`` | ``s sᵀ``, ``s = (σ_1 … σ_M)`` | ``K_X`` | li2012, section 4.2.2 |

``distribution: uniform`` draws ``Z_i = σ_i K_0^½ u``, u uniform on ±√3 (agrawal2000).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from auditor.numerics.autoregression import Autoregression
from auditor.registry import PluginParameters, register
from auditor.schemes.base.additive import SERIAL, AdditiveScheme, FreshNoise, Serial, serial_law
from auditor.schemes.base.noise_shapes import NoiseShape
from auditor.schemes.base.plans import ORIGINAL, Step
from auditor.schemes.base.scheme import TableMoments


@register
class Independent(FreshNoise):
    """Fresh white noise in every copy. Broken under collusion, and by filters.

    Gaussian or uniform, with covariance σ²·(tr K_X / N)·I.
    """

    name = "independent"
    held_against = True
    reference = "li2012, section 5.1.1; huang2005, sections 4 and 6.1"
    assumes = "Recipients never pool their copies, and the attributes are uncorrelated."

    class Parameters(PluginParameters):
        """Covariance of the noise across attributes, and its distribution."""

        noise: NoiseShape = Field("white", description="shape of the noise across attributes, K_0")
        distribution: Literal["gaussian", "uniform"] = Field(
            "gaussian", description="gaussian, or uniform with the same covariance"
        )

    @property
    def distribution(self) -> Literal["gaussian", "uniform"]:
        chosen: Literal["gaussian", "uniform"] = self.parameters.distribution
        return chosen


@register
class Correlated(FreshNoise):
    """Fresh noise with the data's covariance. Broken under collusion.

    Gaussian, with covariance σ²·K_X.
    """

    name = "correlated"
    held_against = True
    fresh_shaped_noise = True
    assumes = "Recipients never pool their copies."

    class Parameters(PluginParameters):
        """Covariance of the noise across attributes, and along the records."""

        noise: NoiseShape = Field("data", description="shape of the noise across attributes, K_0")
        serial: Serial = Field("none", description=SERIAL)

    def serial(self, table: TableMoments) -> Autoregression | None:
        return serial_law(self.parameters.serial, table)


@register
class LinearlyDependent(AdditiveScheme):
    """One noise draw scaled to every level. Broken: two copies disclose all.

    ``X = (σ_2 Y_1 − σ_1 Y_2) / (σ_2 − σ_1)`` exactly, for any two different levels.
    """

    name = "linearly-dependent"
    held_against = True
    claims = "Nothing under collusion: two copies at different levels give the table exactly (li2012, section 4.2.2)."
    reference = "li2012, section 4.2.2"
    assumes = "Recipients never pool their copies."
    # two copies disclose the table with any last digits, and exactly without a grid
    on_grid = False

    def level_covariance(self, levels: Sequence[float]) -> NDArray[np.float64]:
        """Return ``Sigma = s sᵀ``, shape (M, M)."""
        s = np.sqrt(np.asarray(levels, dtype=np.float64))
        return np.outer(s, s)

    def plan(self, levels: Sequence[float], existing: int = 0) -> list[Step]:
        """Return ``Y_i = X + (σ_i/σ_b)(Y_b − X)`` with b the noisiest copy.

        A fresh draw only if no copy exists.
        """
        steps = []
        for copy in range(existing + 1, len(levels) + 1):
            sigma = float(np.sqrt(levels[copy - 1]))
            before = max(range(1, copy), key=lambda c: levels[c - 1], default=0)
            if before and levels[before - 1] > 0:
                ratio = sigma / float(np.sqrt(levels[before - 1]))
                steps.append(Step(copy, ((ORIGINAL, 1.0 - ratio), (before, ratio))))
            else:
                steps.append(Step(copy, ((ORIGINAL, 1.0),), ((copy, sigma),) if sigma > 0 else ()))
        return steps
