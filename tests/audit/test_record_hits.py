"""Records rebuilt as a whole."""

import numpy as np

from auditor.adversary.attack import Reconstruction
from auditor.adversary.knowledge import KnownSample
from auditor.adversary.view import UnpairedRecords
from auditor.audit.measures.record_disclosure import WholeRecords
from auditor.audit.numeric.moment_pass import RowSelection
from auditor.audit.numeric.views import Gathered, ReleasedCopies
from auditor.data.microdata import as_table
from auditor.runs.run_scenario import run_scenario
from auditor.scenario.read import read_scenario
from auditor.schemes.base.scheme import table_moments

BASE = {
    "seed": 3, "data": {"source": "components", "shapes": ["exponential", "uniform"], "attributes": 5, "mean": 1, "rows": 300},
    "coalitions": ["all"], "replicates": 5,
}  # fmt: skip


def measured(document):
    return run_scenario(read_scenario(BASE | document)).measurements


def test_success_is_the_exact_chance_and_the_most_exposed_record_is_told_by_its_chance_alone():
    """200 guesses × 5 replicates; four standard errors."""
    records = measured({
        "schemes": ["rotation"], "knowledge": [{"known-records": 2}, {"known-records": 4}],
        "attacks": [{"name": "known-io-rotation", "guesses": 200}], "measures": [{"records-within": {"tolerance": 0.5}}],
    })  # fmt: skip
    for knowledge in ("known-records(2)", "known-records(4)"):
        for metric in ("records_within", "most_exposed"):
            cell = [r for r in records if r.metric == metric and r.knowledge == knowledge]
            gap = np.array([r.value - r.theory for r in cell])
            assert abs(gap.mean()) < 4 * max(gap.std(ddof=1) / np.sqrt(5), 0.5 / np.sqrt(1000))


def view_of(knowledge):
    table = as_table(np.random.default_rng(0).standard_normal((50, 3)))
    copy = table.values + 100.0
    copies = ReleasedCopies(
        table, table_moments(table), (0.0,), None, lambda: iter([(0, table.values, [copy])])
    )
    rows = RowSelection(table, [knowledge], 0, 1)
    return table, rows, Gathered(copies, rows).view(knowledge)


def test_a_known_sample_is_held_back_from_the_copies():
    table, rows, view = view_of(KnownSample(20))
    seen = np.concatenate(
        [x for _, x, _ in rows.seen(KnownSample(20), lambda: iter([(0, table.values, [])]))()]
    )
    assert len(seen) == view.released.count == 30
    assert not {tuple(row) for row in seen} & {
        tuple(row) for row in view.need(UnpairedRecords).original
    }
    assert len(table.values) == 50


def test_whole_records_by_hand():
    class Fixed(Reconstruction):
        def guesses(self, copies):
            yield copies[0]
            yield copies[0] + 10

        def chances(self, copies, tolerance):
            return np.array([0.25, 0.5])

    counted = WholeRecords(0.1)
    x = np.array([[3.0, 4.0], [0.0, 1.0]])
    # it guesses, so its estimate is but one of these
    counted.add(Fixed(), [x + np.array([[0.3, 0.3], [0.3, 0.0]])], x + 10, x)
    # the first record in the first guess: 0.42 of 5; the second is 0.3 of 1 off
    assert counted.share[0] == 0.25
    assert counted.chance == 0.75
    assert counted.exposed[2] == 0.5
