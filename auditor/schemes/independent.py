"""Independent noise: a fresh draw in every copy, so pooling averages it.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``σ_i²`` | level of copy i | scalar | |
| ``Sigma`` | ``diag(σ_1² … σ_M²)`` | (M, M) | li2012, Theorem 3 |
| ``K_0`` | ``(tr K_X / N)·I`` by default: white noise | (N, N) | huang2005, sections 4 and 6.1 |

``distribution: uniform`` draws ``Z_i = σ_i K_0^½ u`` with u uniform on ±√3: equal covariance,
bounded noise (agrawal2000). ``correlated`` shapes the noise like the data, ``K_0 = K_X``, so no
filter can separate them (huang2005, section 8). Broken by design as a multilevel scheme: a
coalition gains with every copy (li2012, Theorem 3).
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from auditor.numerics.autoregression import Autoregression
from auditor.registry import PluginParameters, register
from auditor.schemes.base.additive import FreshNoise
from auditor.schemes.base.noise_shapes import NoiseShape
from auditor.schemes.base.scheme import TableMoments
from auditor.schemes.base.serial import SERIAL, Serial, serial_law


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
