"""What other rows tell in copies of categories without a law: agreement by hand, all distances as defined, planted leaks, honest releases."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pandas as pd
import pytest

import auditor
from auditor.audit.categorical.other_rows import (
    FEWEST_TOLD,
    by_blocks,
    elsewhere,
    law_of,
    posterior,
)
from auditor.audit.categorical.other_rows import sharing as cells_of_shared_noise

RNG = np.random.default_rng
QUIETLY = pytest.mark.filterwarnings("ignore::auditor.errors.AuditorWarning")
SHARES = (0.5, 0.3, 0.15, 0.05)


def values(seed, rows=3_000):
    return RNG(seed).choice(4, rows, p=SHARES)


def audit(folder, x, copies, attacks=("posterior",), **fields):
    """Audit copies in files, vouching that they are the table's."""
    pd.DataFrame({"group": np.array(list("abcd"))[x]}).to_csv(folder / "original.csv", index=False)
    for number, copy in enumerate(copies):
        pd.DataFrame({"group": np.array(list("abcd"))[copy]}).to_csv(
            folder / f"copy-{number}.csv", index=False
        )
    files = [str(folder / f"copy-{number}.csv") for number in range(len(copies))]
    return auditor.run({
        "data": {"source": str(folder / "original.csv"), "categorical": ["group"]}, "attacks": list(attacks), "coalitions": "subsets",
        "schemes": [{"name": "published", "copies": files, "aligned": True} | fields], "knowledge": ["perfect"],
        "expect": [{"exposure": {"unknown": {"at-least": 0.5}}}],
    })  # fmt: skip


def told(result, metric="accuracy", coalition=(1,), attack="other-rows"):
    found = [
        r
        for r in result.measurements
        if (r.attack, r.metric, r.attribute, r.coalition) == (attack, metric, "*", coalition)
    ]
    return found[0] if found else None


def test_agreement_of_rows_paired_at_random_by_hand():
    """All 720 pairings of six records with six cells: mean and variance of how many agree, as the docstring says."""
    x, y = np.array([0, 0, 0, 1, 1, 2]), np.array([0, 0, 1, 1, 2, 2])
    counts = np.array(
        [sum(x[t] == y[other] for t, other in enumerate(order)) for order in permutations(range(6))]
    )
    a, b, n = np.bincount(x), np.bincount(y), 6
    variance = ((a * (n - a)) @ (b * (n - b)) + (a @ b) ** 2 - ((a * b) ** 2).sum()) / (
        n * n * (n - 1)
    )
    assert counts.mean() == pytest.approx(a @ b / n)
    assert counts.var() == pytest.approx(variance)


@pytest.mark.parametrize("step", [1, -1])
@pytest.mark.parametrize("k", [1, 5, 198])
def test_the_cells_found_are_those_that_agree_most_of_all_distances(step, k):
    x = values(k, 199)
    y = np.roll(x if step == 1 else x[::-1], k)
    y = np.where(RNG(k).random(199) < 0.2, RNG(k + 1).permutation(y), y)
    agree = {
        j: sum(x[t] == y[step * (t + j) % 199] for t in range(199))
        for j in range(199)
        if (step, j) != (1, 0)
    }
    best = max(agree, key=lambda j: agree[j])
    assert any(
        (found == y[[step * (t + best) % 199 for t in range(199)]]).all()
        for found in elsewhere(x, y, 4)
    )


def test_nothing_is_elsewhere_in_honest_copies():
    """Twelve copies of records in no order: kept with probability ½, shuffled, of one value; of rare values; of few records."""
    x = values(1)
    copies = [
        np.where(RNG(seed).random(x.size) < 0.5, x, RNG(seed + 50).permutation(x))
        for seed in range(5)
    ]
    copies += [RNG(seed).permutation(x) for seed in range(5)] + [np.zeros(x.size, dtype=int), x]
    assert [elsewhere(x, copy, 4) for copy in copies] == [[]] * 12
    rare = np.arange(x.size) // (x.size - 3)
    assert elsewhere(rare, RNG(2).permutation(rare), 2) == []
    assert elsewhere(x[:1], x[:1], 4) == elsewhere(x[:2], x[1::-1], 4) == []


def test_a_share_too_small_to_matter_is_passed_over():
    x = RNG(3).integers(0, 50, 40_000)
    y = RNG(4).permutation(x)
    # ten standard deviations, and half of a hundredth of the records
    some = RNG(5).random(x.size) < FEWEST_TOLD / 2
    assert elsewhere(x, np.where(some, np.roll(x, 1), y), 50) == []
    assert (
        len(elsewhere(x, np.where(RNG(5).random(x.size) < 4 * FEWEST_TOLD, np.roll(x, 1), y), 50))
        == 1
    )


def test_the_posterior_by_hand():
    """Half of the eight records teach; a cell that always shows the value is believed but for a uniform law's worth of doubt."""
    x = np.tile([0, 1], 200)
    taught, left = np.arange(200), np.arange(200, 400)
    P = posterior(law_of(x, [x], taught, [2]), [x[left]], np.array([0.5, 0.5]))
    assert P.shape == (200, 2)
    assert (P[np.arange(200), x[left]] > 0.99).all()
    silent = np.zeros(400, dtype=int)
    uninformed = posterior(law_of(x, [silent], taught, [2]), [silent[left]], np.array([0.3, 0.7]))
    np.testing.assert_allclose(uninformed, np.tile([0.3, 0.7], (200, 1)), atol=1e-12)


@QUIETLY
def test_values_of_the_row_before_are_no_safe_copy(tmp_path):
    """Three of four values are the row before's: a guess by the best of a record's cell and the next one is right for more than 75 %."""
    x = values(6)
    copy = np.where(RNG(7).random(x.size) < 0.75, np.roll(x, 1), x)
    result = audit(tmp_path, x, [copy], attacks=("posterior", "serial-posterior"))
    found = told(result)
    by_next = float(np.mean(np.roll(copy, -1) == x))
    assert found.value > by_next - 2 * found.std_error
    assert found.value > told(result, attack="posterior").value + 0.2
    assert result.expectations[0].status == "fails"


@QUIETLY
@pytest.mark.parametrize("move", ["by one", "from the end"])
def test_moved_rows_are_rebuilt(move, tmp_path):
    x = values(8)
    result = audit(
        tmp_path, x, [np.roll(x, 1) if move == "by one" else x[::-1], RNG(9).permutation(x)]
    )
    assert told(result).value == told(result, coalition=(1, 2)).value == 1.0
    assert told(result, coalition=(2,)) is None
    assert result.expectations[0].status == "fails"


@QUIETLY
def test_shuffled_rows_and_stated_laws_have_no_such_figures(tmp_path):
    x = values(10)
    shuffled = audit(tmp_path, x, [RNG(11).permutation(x)])
    assert told(shuffled) is None
    assert shuffled.expectations[0].status == "holds"
    kept = np.where(RNG(12).random(x.size) < 0.3, x, RNG(13).integers(0, 4, x.size))
    assert told(audit(tmp_path, x, [kept], levels=[0.3], law={"scheme": "uniform"})) is None


@QUIETLY
def test_of_several_attributes_each_has_its_own_figure(tmp_path):
    """One column of two is moved: it is given away, and the other, of which the copy is shuffled, is not."""
    a, b = values(14), values(15)
    frame = pd.DataFrame({"group": np.array(list("abcd"))[a], "size": np.array(list("efgh"))[b]})
    frame.to_csv(tmp_path / "original.csv", index=False)
    frame.assign(group=np.roll(frame["group"], 1), size=RNG(16).permutation(frame["size"])).to_csv(
        tmp_path / "copy.csv", index=False
    )
    result = auditor.run({
        "data": {"source": str(tmp_path / "original.csv"), "categorical": ["group", "size"]}, "attacks": ["posterior"], "knowledge": ["perfect"],
        "schemes": [{"name": "published", "copies": [str(tmp_path / "copy.csv")], "aligned": True}],
    })  # fmt: skip
    right = {
        r.attribute: r.value
        for r in result.measurements
        if (r.attack, r.metric) == ("other-rows", "accuracy")
    }
    assert right["group"] == 1.0
    assert right["size"] < 0.55


def sharing(x, rows, seed, p=0.5, values=4):
    """Rows in turn share whether they are kept, and what replaces them: of those that differ from the ones beside them all are kept."""
    which = np.arange(len(x)) // rows * rows
    return np.where(
        (RNG(seed).random(len(x)) < p)[which], x, RNG(seed + 1).integers(0, values, len(x))[which]
    )


@pytest.mark.parametrize("k", [1, 7])
def test_cells_that_share_their_noise_are_the_ones_that_agree_if_either_does(k):
    """At the distance at which a copy agrees with itself most often beyond what its law says of the originals: rows k apart, in twos."""
    x = values(30, 1_400)
    deal = np.arange(1_400).reshape(-1, k).T.ravel()
    y = np.empty_like(x)
    y[deal] = sharing(x[deal], 2, 31)
    (found,) = elsewhere(x, y, 4)
    assert found.tolist() == [
        y[t - k] if y[t - k] == y[t] else y[(t + k) % len(y)] for t in range(len(y))
    ]


@QUIETLY
@pytest.mark.parametrize("rows", [2, 5])
def test_noise_that_several_rows_share_is_no_safe_copy(rows, tmp_path):
    """Where 68 in a hundred are kept some 0.53 of the variance is unknown of rows with noise of their own; of these it was, too."""
    x = RNG(30).choice(4, 20_000)
    result = audit(tmp_path, x, [sharing(x, rows, 31, p=0.68)])
    assert (
        told(result, "normalized_error").value
        < 0.49
        < 0.51
        < told(result, "normalized_error", attack="posterior").value
    )
    assert result.expectations[0].status == "fails"


def laid(kind, seed, n):
    x = values(seed, n)
    if kind == "series":
        x = x[np.maximum.accumulate(np.where(RNG(seed).random(n) < 0.2, np.arange(n), 0))]
    return np.sort(x) if kind == "sorted" else x


@pytest.mark.parametrize("kind", ["in no order", "series", "sorted"])
def test_no_noise_is_shared_in_honest_copies(kind):
    """None of 60 copies, of 3,000 of eight kinds when it was last measured: a rate of one in a thousand would leave that with a chance of 0.05."""
    for seed in range(10):
        x = laid(kind, seed, 1_000)
        for share in (0.05, 0.95):
            y = np.where(
                RNG(seed + 50).random(1_000) < share, x, RNG(seed + 70).integers(0, 4, 1_000)
            )
            assert cells_of_shared_noise(x, y, 4, np.arange(4)) == []


def by_their_own_distance(x, rows, turned):
    blocks = [x[start : start + rows] for start in range(0, len(x), rows)]
    return np.concatenate(
        [
            block[::-1] if turned else np.roll(block, RNG(k).integers(1, rows))
            for k, block in enumerate(blocks)
        ]
    )


@QUIETLY
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("rows", [100, 1_000])
def test_rows_that_were_moved_by_blocks_are_no_safe_copy(rows, turned, tmp_path):
    """A leak of which nothing was known, and that *held*: every block of a hundred rows shifted by a distance of its own."""
    x = values(20)
    result = audit(tmp_path, x, [by_their_own_distance(x, rows, turned)])
    assert told(result).value > 0.85
    assert result.expectations[0].status == "fails"
    shuffled = audit(tmp_path, x, [RNG(21).permutation(x)])
    assert told(shuffled) is None
    assert shuffled.expectations[0].status == "holds"


@pytest.mark.parametrize("kind", ["in no order", "series", "sorted"])
def test_no_blocks_are_found_in_honest_copies(kind):
    """None of 30 copies, of 1,620 in nine kinds when it was last measured: a rate of a tenth would leave that with a chance of 0.04."""
    for seed in range(10):
        x = laid(kind, seed, 1_500)
        for share in (0.0, 0.1, 0.5):
            y = np.where(RNG(seed + 50).random(1_500) < share, x, RNG(seed + 70).permutation(x))
            assert by_blocks(x, y, np.arange(4), 0.45 * 1_500) == []


def test_stretches_of_a_long_table_say_whether_blocks_are_looked_for(monkeypatch):
    """Its first 4,000 records once said so: a table whose rows were moved after these held."""
    monkeypatch.setattr("auditor.audit.categorical.other_rows.LOOKED_AT", 1_000)
    monkeypatch.setattr("auditor.audit.insider.features.moved_blocks.LOOKED_AT", 1_000)
    x = values(22)
    late = np.concatenate(
        [RNG(23).permutation(x[:1_500]), by_their_own_distance(x[1_500:], 100, True)]
    )
    assert len(by_blocks(x, by_their_own_distance(x, 100, True), np.arange(4), 1_500.0)) == 1
    assert len(by_blocks(x, late, np.arange(4), 1_500.0)) == 1
    assert (
        by_blocks(x, RNG(24).permutation(x), np.arange(4), 1_500.0)
        == by_blocks(x[:100], x[:100], np.arange(4), 40.0)
        == []
    )
