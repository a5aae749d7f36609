"""Theory that needs the true rows: when it is asked for, of which rows, and that nothing else is read or changed."""

import numpy as np
import pytest
from large_tables import figures

import auditor
from auditor.adversary.attack import Reconstruction
from auditor.adversary.knowledge import KnownSample
from auditor.audit.numeric.known_rows import Originals, with_row_theory
from auditor.data.table import Table
from auditor.numerics.blocks import row_blocks
from auditor.runs.estimate import attack
from auditor.runs.perturb import perturb

NONE = np.empty(0, dtype=np.intp)
SCENARIO = {
    "schema": 1, "seed": 3,
    "data": {"source": "components", "shapes": ["exponential", "uniform", "laplace"], "rows": 3000, "mean": 2, "ratio": 1.2},
    "schemes": ["rotation", {"name": "random-projection", "dimensions": 4}],
    "knowledge": [{"known-records": 30}, {"known-sample": 800}, {"unmatched-records": 800}],
    # so that nothing is drawn again for error bars
    "coalitions": ["all"], "attacks": ["ica", {"id": "guo-wu", "name": "ica", "components": "latent"}], "replicates": 5,
}  # fmt: skip


def numbered(rows, width=2):
    return Table(
        tuple(f"x{k}" for k in range(width)),
        np.arange(rows * width, dtype=float).reshape(rows, width),
        source="array",
    )


def test_originals_cannot_be_written_to():
    for without in (NONE, np.array([3])):
        x = next(iter(Originals(numbered(50), without)))
        with pytest.raises(ValueError, match="read-only"):
            x[0] = 0.0


class Plain(Reconstruction):
    def rows(self, copies):
        return copies[0]


class Remembering(Plain):
    """Expects the mean of what it learnt from, for each record."""

    def row_theory(self, seen):
        mean = float(np.concatenate(list(seen)).mean())
        return lambda x: np.full(len(x), mean)


def test_nothing_is_read_for_attacks_without_row_theory():
    class Unread:
        def __iter__(self):
            raise AssertionError("read")

    own = np.array([np.nan, 4.0])
    assert with_row_theory(own, [Plain(), Plain()], Unread(), Unread()) == pytest.approx(
        own, nan_ok=True
    )


def test_row_theory_is_summed_over_the_rows_judged_and_takes_the_place_of_what_is_expected_without():
    table, given = numbered(10, 1), np.array([0, 9])
    found = with_row_theory(
        np.array([np.nan, 7.0]),
        [Remembering(), Plain()],
        Originals(table, NONE),
        Originals(table, given),
    )
    assert found.tolist() == [8 * 4.5, 7.0]


def test_an_adversary_with_a_sample_learnt_from_the_rows_it_is_judged_on_others_from_all():
    from auditor.audit.numeric.known_rows import RowSelection  # what the audit asks
    from auditor.scenario.read_knowledge import parse_knowledge

    X = np.random.default_rng(0).standard_normal((300, 2))
    asked = {}

    class Spy(RowSelection):
        def originals(self, knowledge):
            asked[knowledge.label] = super().originals(knowledge)
            return asked[knowledge.label]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("auditor.runs.estimate_numbers.RowSelection", Spy)
        for knowledge in ({"known-sample": 40}, {"known-records": 40}, {"unmatched-records": 40}):
            attack("ica", perturb(X, "rotation", [0], seed=1), knowledge=knowledge)
    assert isinstance(parse_knowledge({"known-sample": 40}), KnownSample)
    sizes = {label: tuple(sum(map(len, rows)) for rows in pair) for label, pair in asked.items()}
    assert sizes == {
        "known-sample(40)": (260, 260),
        "known-records(40)": (300, 260),
        "unmatched-records(40)": (300, 260),
    }


def test_the_original_is_shown_after_every_estimate_has_been_made(monkeypatch):
    """In the engine too, and for a table of many blocks: a plugin could keep what it is shown."""
    from auditor_attacks import ica

    calls = []
    rows, row_theory = ica.Unmixed.rows, ica.Unmixed.row_theory
    monkeypatch.setattr(
        ica.Unmixed, "rows", lambda self, copies: calls.append("rows") or rows(self, copies)
    )
    monkeypatch.setattr(
        ica.Unmixed,
        "row_theory",
        lambda self, seen: calls.append("row_theory") or row_theory(self, seen),
    )
    document = SCENARIO | {"data": SCENARIO["data"] | {"rows": 200_000}, "attacks": ["ica"], "knowledge": [{"known-records": 30}],
                           "schemes": ["rotation"], "replicates": 1}  # fmt: skip
    auditor.run(document)
    assert calls[: calls.index("row_theory")].count("rows") == len(row_blocks(200_000, 3))


@pytest.mark.slow
def test_theory_in_an_audit_is_what_is_measured_for_any_number_of_workers():
    one, two = auditor.run(SCENARIO, workers=1), auditor.run(SCENARIO, workers=2)
    assert figures(one) == figures(two)
    cells = [m for m in one.measurements if m.metric == "distortion" and m.attribute == "*"]
    # Guo and Wu's variant does not apply to known records, and is listed
    assert len(cells) == 5 * 2 * (3 + 2) + 2 * 5
    known = [m for m in cells if m.status == "ok"]
    assert [m.theory for m in known] == pytest.approx([m.value for m in known], rel=1e-8)
