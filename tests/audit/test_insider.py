"""The insider learner: planted leaks in copies without a law, honest copies, gains by pooling, and its parts by hand."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from planted_leaks import HONEST, LEAKS, RNG
from scipy.linalg import hadamard

import auditor
from auditor import registry
from auditor.audit.insider.feature import Feature
from auditor.audit.insider.features.signs import walsh
from auditor.audit.insider.fitted import predictions
from auditor.audit.insider.gain import correlations, insider_gains
from auditor.audit.insider.learner import bin_means
from auditor.audit.numeric.limits import FEWEST_TREE_ROWS
from auditor.expectations.no_collusion_gain import NoCollusionGain
from auditor.results.evidence import Evidence, InsiderGain, NoiseGain, Pooling, ReleaseEvidence
from auditor.schemes.base.noise_law import KroneckerNoise, psd_root, undo_root
from auditor.testing import ContractError, check_feature
from tests import planted_cases

QUIETLY = pytest.mark.filterwarnings("ignore::auditor.errors.AuditorWarning")
HALF = {"exposure": {"unknown": {"at-least": 0.5}}}
QUICK = {
    "codes for values",
    "shares of a secret",
    "rows moved by one",
    "half of the records in each copy",
    "noise shared by five rows",
}


def unknown(leak, seed=1):
    """Return the share unknown of each attribute."""
    rng = RNG(seed)
    X = leak.table(rng)
    copies = [np.asarray(copy, dtype=np.float64) for copy in leak.copies(rng, X)]
    return ((predictions(X, copies, np.arange(len(X)))[0] - X) ** 2).mean(axis=0) / X.var(axis=0)


@pytest.mark.parametrize(
    "kind",
    [kind if kind in QUICK else pytest.param(kind, marks=pytest.mark.slow) for kind in LEAKS],
)
def test_a_planted_leak_is_found(kind):
    left = LEAKS[kind].left
    found = unknown(LEAKS[kind])[: len(left)]
    assert (found <= left).all(), found


@pytest.mark.parametrize(
    "kind",
    [
        kind if kind == "two copies" else pytest.param(kind, marks=pytest.mark.slow)
        for kind in HONEST
    ],
)
def test_of_honest_copies_as_much_is_unknown_as_is(kind):
    """Three releases of each kind; noise of six deviations leaves 36/37 unknown."""
    for seed in range(3):
        assert unknown(HONEST[kind], seed).min() > 0.9


def test_of_normal_noise_the_best_linear_error_is_left():
    """One half at a noise variance of 1, in 20 tables of 600 records; what learning costs is at most a tenth of it."""
    left = []
    for seed in range(20):
        X = RNG(seed).standard_normal((600, 1))
        Y = X + RNG(seed + 50).standard_normal((600, 1))
        left.append(((predictions(X, [Y], np.arange(600))[0] - X) ** 2).mean() / X.var())
    error = np.std(left, ddof=1) / np.sqrt(20)
    assert 0.5 - 4 * error < np.mean(left) < 0.55 + 4 * error


# -- whole audits
# ------------------------------------------------------------------------------------------------------------


def audit(folder, X, copies, attacks=("ndr",), knowledge=("perfect",), key=None):
    """Audit copies in files, vouching that they are the table's."""
    X.to_csv(folder / "original.csv", index=False)
    files = [str(folder / f"copy-{number}.csv") for number in range(len(copies))]
    for file, copy in zip(files, copies, strict=True):
        copy.to_csv(file, index=False)
    how = {"aligned": True} if key is None else {"key": key}
    return auditor.run({
        "data": {"source": str(folder / "original.csv")}, "schemes": [{"name": "published", "copies": files} | how],
        "attacks": list(attacks), "coalitions": "subsets", "knowledge": list(knowledge), "expect": [HALF],
    })  # fmt: skip


def taught(result, coalition=(1,), attribute="*"):
    found = [
        r
        for r in result.measurements
        if (r.attack, r.metric, r.attribute)
        == ("fitted-to-originals", "normalized_error", attribute)
    ]
    return next(r for r in found if r.coalition == coalition)


def frame(values):
    return pd.DataFrame(values, columns=["a", "b"])


@QUIETLY
def test_moved_rows_fail_the_exposure_and_shuffled_ones_hold_it(tmp_path):
    X = np.exp(RNG(20).normal(size=(2_000, 2)))
    moved = audit(tmp_path, frame(X), [frame(np.roll(X, 1, axis=0))])
    assert taught(moved).value < 1e-9
    assert moved.expectations[0].status == "fails"
    shuffled = audit(tmp_path, frame(X), [frame(RNG(22).permutation(X))])
    assert taught(shuffled).value > 0.95
    assert shuffled.expectations[0].status == "holds"


@QUIETLY
def test_a_factor_that_another_copy_shows_is_found_by_whoever_holds_both(tmp_path):
    X, secret = np.exp(RNG(41).normal(0.0, 0.7, (2, 2_000, 2)))
    result = audit(tmp_path, frame(X), [frame(X * secret), frame(secret)])
    assert taught(result, (1,)).value > 0.5
    assert taught(result, (1, 2)).value < 0.01
    assert result.expectations[0].status == "fails"


@QUIETLY
def test_keys_that_count_by_an_attribute_give_it_away(tmp_path):
    rng = RNG(17)
    X = frame(rng.uniform(-2.0, 2.0, (1_000, 2)))
    keyed = X.assign(id=X["b"].rank().astype(int) + 1_000)
    copy = keyed.assign(
        a=X["a"] + 3.0 * rng.standard_normal(1_000), b=X["b"] + 3.0 * rng.standard_normal(1_000)
    )
    result = audit(tmp_path, keyed, [copy], key="id")
    assert taught(result, attribute="b").value < 0.05 < 0.8 < taught(result, attribute="a").value


def test_whoever_knows_nothing_of_how_copies_were_made_is_not_taught(tmp_path):
    X = RNG(8).standard_normal((300, 2))
    result = audit(
        tmp_path, frame(X), [frame(np.minimum(X, 0.5))], knowledge=[{"known-records": 50}]
    )
    assert "fitted-to-originals" not in {r.attack for r in result.measurements}


def test_a_covariance_alone_is_no_whole_law(tmp_path):
    """Noise in the logarithms of 1 and 1,000: by its covariance next to nothing is known, and a threshold separates 98 of 100."""
    X = frame(np.where(RNG(9).random((1_000, 2)) < 0.5, 1.0, 1_000.0))
    X.to_csv(tmp_path / "original.csv", index=False)
    result = auditor.run({
        "data": {"source": str(tmp_path / "original.csv")}, "attacks": ["llse"], "coalitions": "singles", "knowledge": ["perfect"],
        "schemes": [{"name": "multiplicative-noise", "levels": [3.0], "logs": True}], "expect": [HALF],
    })  # fmt: skip
    assert taught(result).value < 0.2
    assert result.expectations[0].status == "fails"


# -- gains by pooling
# --------------------------------------------------------------------------------------------------------

COVERT = [
    planted_cases.PermutedBins, planted_cases.BinsOfTheRecord, planted_cases.SignsAcrossAttributes, planted_cases.Bands, planted_cases.FineBands,
    planted_cases.ScaleByRecord, planted_cases.SignsOfThreeCopies, planted_cases.SizesThatTellSigns, planted_cases.Decimals,
    planted_cases.OrderedByRecord, planted_cases.TheRowBefore, planted_cases.RanksThatAddUp,
]  # fmt: skip
"""Leaks that keep corner-wave's covariance."""


def release(leak=None, rows=20_000, seed=1, kind="skewed"):
    """Return a table and copies at levels 0.3, 0.6 and 0.9; a leak is in half of the records, at random."""
    rng = RNG(seed)
    x = rng.standard_normal((rows, 2)) @ np.array([[1.0, 0.5], [0.0, 0.9]])
    x = {
        "skewed": np.exp,
        "heap": lambda v: np.maximum(v, 0.0),
        "normal": lambda v: v,
        "ages": lambda v: np.round(40 + 9 * v),
    }[kind](x)
    g = rng.standard_normal((3, rows, 2))
    honest = g.copy()
    if leak is not None:
        leak().innovations(x, g, rng)
    here = rng.uniform(size=(rows, 1)) < 0.5
    steps = [
        np.where(here, step, fair) * np.sqrt(0.3) * x.std(axis=0)
        for step, fair in zip(g, honest, strict=True)
    ]
    return x, [x + z for z in np.cumsum(steps, axis=0)]


def gain_of(x, copies):
    return InsiderGain(
        1, (1, 2, 3), *(tuple(part.tolist()) for part in correlations(x, copies)), len(x)
    )


def verdicts(found):
    """Verdicts on copies with their scheme's law, with one that is only said to be theirs, and without one."""
    whole = Pooling(True, NoiseGain(2e-5, 2, 40_000), insider=found)
    for pooling in (
        whole,
        replace(whole, proved=False),
        replace(whole, sufficient=None, noise=None),
    ):
        yield NoCollusionGain().judge(
            Evidence([], [ReleaseEvidence({}, "s", "s", 3, 1, 20_000, {(1, 2, 3): pooling})])
        )


@pytest.mark.parametrize(
    "leak",
    [
        pytest.param(leak, id=leak.name, marks=[pytest.mark.slow] if leak is not COVERT[6] else [])
        for leak in COVERT
    ],
)
def test_a_leak_with_the_covariance_of_lawful_copies_is_never_acquitted(leak):
    x, copies = release(leak)
    found = gain_of(x, copies)
    assert max(found.gain) > 0.008
    assert all(one.status != "holds" for one in verdicts(found))


def test_honest_noise_on_a_skewed_table_holds_and_names_the_adversaries():
    lawful, stated, silent = verdicts(gain_of(*release(rows=8_000)))
    assert [one.status for one in (lawful, stated, silent)] == ["holds"] * 3
    for one in (lawful, stated, silent):
        assert re.search(r"no (linear or )?boosted-tree attack beyond 0\.", one.why)


@pytest.mark.slow
def test_the_test_of_a_gain_is_valid_on_four_tables():
    """Of 80 tests in honest releases at most 9 have p < 0.05 and at most 3 p < 0.01: P(more) = 1 % each."""
    p = [gain_of(*release(rows=1_500, seed=seed, kind=kind)).p_values(place, 0.0)[1]
         for seed in range(10) for kind in ("skewed", "heap", "normal", "ages") for place in (0, 1)]  # fmt: skip
    assert np.sum(np.array(p) < 0.05) <= 9
    assert np.sum(np.array(p) < 0.01) <= 3


def test_without_proof_a_learner_that_cannot_see_leaves_it_undecided():
    """Too few rows to teach it, or an error bar wider than the margin; a scheme's own law needs neither."""
    coarse = InsiderGain(1, (1, 2, 3), (0.0, 0.0), (0.08, 0.08), (500.0, 500.0), 2_000)
    for blind in (None, coarse):
        assert [one.status for one in verdicts(blind)] == ["holds", "undecided", "undecided"]


def test_the_gain_of_a_wider_coalition_refutes_nothing_of_a_part():
    wider = InsiderGain(1, (1, 2, 3), (0.4, 0.0), (0.01, 0.01), (900.0, 900.0), 20_000)
    pooling, judge = (Pooling(None, insider=wider), NoCollusionGain().judge)
    assert (
        judge(Evidence([], [ReleaseEvidence({}, "s", "s", 3, 1, 20_000, {(1, 2): pooling})])).status
        == "undecided"
    )
    assert (
        judge(
            Evidence(
                [],
                [
                    ReleaseEvidence(
                        {}, "s", "s", 3, 1, 20_000, {(1, 2): pooling, (1, 2, 3): pooling}
                    )
                ],
            )
        ).status
        == "fails"
    )


def test_each_best_copy_has_its_widest_coalition_measured():
    x, copies = release(rows=FEWEST_TREE_ROWS)
    law = KroneckerNoise(np.minimum.outer([0.3, 0.6, 0.9], [0.3, 0.6, 0.9]), np.eye(2))
    asked = [(1,), (2,), (3,), (1, 2), (1, 3), (2, 3), (1, 2, 3)]
    found = insider_gains(asked, x, copies, law)
    assert {coalition: one.copies for coalition, one in found.items()} == {
        c: (2, 3) if 1 not in c else (1, 2, 3) for c in asked[3:]
    }
    assert insider_gains(asked, x[1:], [copy[1:] for copy in copies], law) == {}


def test_equal_copies_and_constant_columns_gain_nothing():
    x, copies = release(rows=1_000)
    flat = [np.column_stack([part, np.full(len(x), 7.0)]) for part in (x, *copies[:2])]
    r, error, _ = correlations(flat[0], flat[1:])
    assert np.isfinite(r).all()
    assert r[2] == error[2] == 0.0
    np.testing.assert_array_equal(correlations(x, [copies[0], copies[0]])[0], 0.0)


@pytest.mark.slow
def test_digits_are_read_in_the_normals_that_a_generator_mixes_over_attributes():
    rng = RNG(7)
    x = np.exp(rng.standard_normal((4_000, 2)) @ np.array([[1.0, 0.5], [0.0, 0.9]]))
    g = rng.standard_normal((2, *x.shape))
    planted_cases.Decimals().innovations(x, g, rng)
    law = KroneckerNoise(np.minimum.outer([0.3, 0.6], [0.3, 0.6]), np.cov(x.T, bias=True))
    copies = [x + z for z in np.cumsum(np.sqrt(0.3) * g, axis=0) @ psd_root(law.shape).T]
    for stated in (law, None):
        assert min(insider_gains([(1, 2)], x, copies, stated)[1, 2].gain) > 0.1


# -- parts
# -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", registry.names("feature"))
def test_a_family_keeps_the_contract(name):
    check_feature(registry.get("feature", name))


def test_a_family_that_reads_originals_unasked_breaks_the_contract():
    class Peeking(Feature):
        """Yields a column for each original that it sees."""

        name = "peeking"

        def columns(self, shown, known):
            for row in np.flatnonzero(np.isfinite(known.left))[:3]:
                yield f"row {row}", lambda s: s.flat[:, 0]

    with pytest.raises(ContractError, match="reads what it states"):
        check_feature(Peeking)


def test_bin_means_shrink_noise_and_keep_signals():
    bins, targets = np.repeat(np.arange(10), 50), RNG(4).standard_normal((500, 2))
    targets[:, 1] = bins
    means = bin_means(bins, targets, 10)
    assert np.abs(means[:, 0]).max() < 0.2
    np.testing.assert_allclose(means[:, 1], np.arange(10.0), atol=1e-9)


def test_products_of_signs_are_tried_all_at_once():
    """Against the matrix that defines the transform."""
    sums = RNG(0).normal(size=(2, 16))
    np.testing.assert_allclose(walsh(sums), sums @ hadamard(16))


def test_what_undoes_a_root_by_hand_in_any_units_and_of_a_total():
    np.testing.assert_allclose(undo_root(np.diag([4.0, 1e-16])), np.diag([0.5, 1e8]))
    # a total beside its parts: two normals' worth
    parts = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [1.0, 1.0, 2.0]])
    through = undo_root(parts) @ parts @ undo_root(parts).T
    np.testing.assert_allclose(np.linalg.eigvalsh(through), [0.0, 1.0, 1.0], atol=1e-9)


def test_a_sign_that_alternates_along_the_file_is_found():
    rng = RNG(2**42)
    x = np.exp(rng.normal(size=(6_000, 1)))
    first = x + 2.0 * rng.normal(size=x.shape)
    sign = np.where(np.arange(len(x)) % 2, 1.0, -1.0)[:, None] * np.sign(x - np.median(x))
    r, error, _ = correlations(x, [first, first + 2.0 * sign * np.abs(rng.normal(size=x.shape))])
    assert r[0] > 5.0 * error[0]
