"""Theory for a map that was estimated from other records than it is judged on: its expected error over *their* noise, given the map.

Noise is drawn record by record, so the noise of the records judged is independent of the map, and the closed form of fixed weights holds:
``A + S`` of ``auditor.audit.numeric.closed_form``. Exact for any table. How good a map so many records allow is another question: the
error bar includes it (``auditor.audit.numeric.redraws``), this expectation does not.
"""

from __future__ import annotations

from dataclasses import replace

from auditor.audit.numeric.closed_form import closed_form
from auditor.audit.numeric.error_bars import Errors, rounded_off, with_total
from auditor.audit.numeric.stacked_maps import Maps
from auditor.numerics.moments import Moments
from auditor.schemes.base.noise_law import NoiseLaw
from auditor.types import Array


def expected_errors(maps: Maps, judged: Moments, law: NoiseLaw) -> Array:
    """Return the expected squared errors over the records judged, shape (B, N + 1), the last column their mean over attributes.

    Parameters
    ----------
    maps : Maps
        Estimated from other records, or not estimated at all; *not checked*.
    judged : Moments
        Of ``[X, …]`` over the records judged.
    law : NoiseLaw
        Of the noise in all copies.
    """
    N = maps.offsets.shape[1]
    return with_total(closed_form(maps.about(judged.mean[:N]), judged.covariance()[:N, :N], law, judged.count).expected)


def with_theory(errors: Errors, maps: Maps, judged: Moments, variances: Array, law: NoiseLaw) -> Errors:
    """Return the same errors with theory beside them.

    There is none of gains: a map of several copies may be better by luck than one of its best copy alone, and what such a pair of maps
    leads to is not what pooling buys.

    Parameters
    ----------
    errors : Errors
    maps, judged, law
        As for ``expected_errors``.
    variances : ndarray of shape (N,)
        Each attribute's variance in the table.
    """
    return replace(errors, theory=rounded_off(expected_errors(maps, judged, law), with_total(variances)))
