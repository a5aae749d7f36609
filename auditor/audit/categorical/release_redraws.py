"""Error bars of attacks on categories that look at neighbouring records: what they yield in other draws of the whole release.

Records of one outcome are not alike to such an attack, so that nothing can be summed over outcomes
and no panel of single records stands for the table. The audit makes the release again from other
seeds, and the attack learns and infers anew, as for numbers (``auditor.audit.attempts.over_rows``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from auditor.audit.categorical.cell_records import Bar, Bars
from auditor.audit.categorical.posterior_measures import Sums
from auditor.audit.categorical.posterior_pass import Fitted, MeasureJob, Try
from auditor.audit.categorical.release import UniformRelease
from auditor.audit.numeric.error_bars import reaches
from auditor.audit.numeric.redraws import seed_of
from auditor.process.containment import contained
from auditor.results.evidence import ROW_REDRAWS
from auditor.results.records import FEWEST_REPLICATES
from auditor.types import Coalition

MOST_RECORDS = 2**16
"""One block: beyond that a draw takes long, and replicates are asked for."""


def serial_bars(
    release: UniformRelease, name: Try, fitted: Fitted, sums: Mapping[Coalition, Sums]
) -> dict[Coalition, Bars]:
    """Return error bars of all that an attack yielded on every coalition; none of a long table or of files, or where replicates tell."""
    if (
        not release.scheme.makes_copies
        or release.data.rows > MOST_RECORDS
        or release.scenario.replicates >= FEWEST_REPLICATES
    ):
        return {}
    again = []
    with contained() as failure:
        again = [_figures(_redrawn(release, name, fitted, number)) for number in range(ROW_REDRAWS)]
    if failure.error is not None:
        return {}
    return {
        coalition: _bars(figures, [draw[coalition] for draw in again])
        for coalition, figures in _figures(sums).items()
    }


def _redrawn(
    release: UniformRelease, name: Try, fitted: Fitted, number: int
) -> Mapping[Coalition, Sums]:
    """Return what an attack yields in another draw of a release."""
    key = release.key
    seed = seed_of(key.audit_seed, key.scheme, key.replicate, number)
    other = replace(release, key=replace(key, seed=seed), share=None, _kept={})
    return other.go_through(MeasureJob(release.data.size, release.groups, {name: fitted}, {})).sums[
        name
    ]


def _figures(sums: Mapping[Coalition, Sums]) -> dict[Coalition, dict[str, float]]:
    """Return every quantity's mean, and the gain over the best copy, by coalition."""
    left = {coalition: float(each.groups.sum()) for coalition, each in sums.items()}
    found = {}
    for coalition, each in sums.items():
        best = min(left[(copy,)] for copy in coalition)
        found[coalition] = {name: each.mean(name) for name in each.means}
        found[coalition]["collusion_gain"] = 1.0 - left[coalition] / best if best > 0 else 0.0
    return found


def _bars(figures: Mapping[str, float], draws: Sequence[Mapping[str, float]]) -> Bars:
    """Return the bar of every figure of a release, given the same in other draws."""
    bars = {}
    for name, figure in figures.items():
        again = np.array([draw[name] for draw in draws])
        bars[name] = Bar(
            float(again.std(ddof=1)),
            float(np.maximum(*reaches(np.asarray(figure), again))),
            "redraws",
        )
    return bars
