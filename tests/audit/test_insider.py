"""The insider learner on planted leaks and honest copies."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from planted_leaks import HONEST, LEAKS, RNG

from auditor import registry
from auditor.audit.insider.feature import Feature
from auditor.audit.insider.fitted import predictions
from auditor.audit.insider.gain import correlations, insider_gains
from auditor.audit.insider.learner import part_of
from auditor.audit.measures.privacy import of_records
from auditor.expectations.no_collusion_gain import NoCollusionGain
from auditor.results import records
from auditor.schemes.base.noise_law import KroneckerNoise
from auditor.testing import ContractError, check_feature
from tests import planted_cases
from tests.audited import audited_files, cells

QUIETLY = pytest.mark.filterwarnings("ignore::auditor.base.AuditorWarning")
QUICK = {"codes for values", "rows moved by one", "half of the records in each copy"}


def unknown(leak, seed=1):
    """Return the share unknown of each attribute."""
    rng = RNG(seed)
    X = leak.table(rng)
    copies = [np.asarray(copy, dtype=np.float64) for copy in leak.copies(rng, X)]
    return ((predictions(X, copies, np.arange(len(X)))[0] - X) ** 2).mean(axis=0) / X.var(axis=0)


@pytest.mark.parametrize("kind", [
    kind if kind in QUICK else pytest.param(kind, marks=pytest.mark.slow) for kind in LEAKS
])  # fmt: skip
def test_a_planted_leak_is_found(kind):
    left = LEAKS[kind].left
    found = unknown(LEAKS[kind])[: len(left)]
    assert (found <= left).all(), found


@pytest.mark.slow_after_first
@pytest.mark.parametrize("kind", sorted(HONEST, key=lambda kind: kind != "two copies"))
def test_of_honest_copies_as_much_is_unknown_as_is(kind):
    assert unknown(HONEST[kind]).min() > 0.9


@pytest.mark.slow
def test_of_normal_noise_the_best_linear_error_is_left():
    """One half at a noise variance of 1, in 8 tables of 600 records; the cost of learning is at most a tenth."""
    left = []
    for seed in range(8):
        X = RNG(seed).standard_normal((600, 1))
        Y = X + RNG(seed + 50).standard_normal((600, 1))
        left.append(((predictions(X, [Y], np.arange(600))[0] - X) ** 2).mean() / X.var())
    error = np.std(left, ddof=1) / np.sqrt(8)
    # t(7) exceeds 5 once in 1,200
    assert 0.5 - 5 * error < np.mean(left) < 0.55 + 5 * error


T = np.arange(1_500)
PARTS = {
    "every fourth row": (T % 4 == 0, lambda x: [("ref", 3 * x + 11)]),
    "the row before, in every fourth": (T % 4 == 0, lambda x: [("ref", np.roll(x, 1))]),
    "logarithms in two of twelve rows": (np.isin(T % 12, [0, 5]), lambda x: [("ref", np.log(x))]),
    "one region": (RNG(2**40).integers(0, 5, 1_500) == 2, lambda x: [("ref", x)]),
    "a stretch": (abs(T - 800) < 150, lambda x: [("ref", x)]),
    "a sum in every third row": (T % 3 == 1, lambda x: [("a", PAD), ("b", x - PAD)]),
}
PAD = 9_000.0 * RNG(2**40 + 1).standard_normal(1_500)


@pytest.mark.slow_after_first
@pytest.mark.parametrize("leaks", [True, False])
@pytest.mark.parametrize("kind", PARTS)
def test_numbers_that_show_a_part_of_the_records_are_used_there(kind, leaks):
    """Elsewhere they belong to other records, which a guess of one constant would not miss."""
    rng, (part, shown) = RNG(2**40 + 2), PARTS[kind]
    x = rng.lognormal(8, 0.5, 1_500).round(2)
    region = np.where(part, 2, rng.choice([0, 1, 3, 4], 1_500)) if kind == "one region" else T % 2
    beside = [("region", region), *shown(np.where(part & leaks, x, rng.permutation(x)))]
    copy = x + x.std() * rng.standard_normal(1_500)
    near = predictions(x[:, None], [copy[:, None]], T, beside)[1][:, 0]
    base, left = of_records(x[:, None], ["pay"], {}), np.abs(near - x)
    hits = left <= base.tolerance.absolute
    assert not leaks or hits[part].mean() > 0.85
    assert (hits.mean() - base.close[0] > 0.1) == leaks


@pytest.mark.parametrize("kind", ["little noise in two months", "twice the value before"])
def test_noise_that_shown_numbers_explain_is_removed(kind):
    """Noise of four times the variance."""
    rng = RNG(2**40 + 3)
    x, shown = rng.normal(50, 9, 1_500), 12.0 * rng.random((9, 1_500))
    if kind == "twice the value before":
        z, order, part = np.empty(1_500), np.argsort(shown[0]), T >= 0
        z[order] = 2 * np.roll(x[order], 1)
    else:
        shown, part = shown // 1, np.isin(shown[0] // 1, [2, 6])
        z = np.where(part, 0.05, 2 * x.std()) * rng.standard_normal(1_500)
    beside = [(f"x{k}", v) for k, v in enumerate(shown)]
    guess = predictions(x[:, None], [(x + z)[:, None]], T, beside)[1][:, 0]
    assert np.square(guess - x)[part].mean() < 0.25 * x.var()


def test_a_part_is_cut_at_its_ends():
    v, rows = RNG(2**40).permutation(1_800) / 2.0, np.arange(0, 1_800, 2)
    inside = (v > 200) & (v < 431)
    found = part_of(v, rows, np.where(inside[rows], 1.0, 0.0))
    assert (found == inside)[rows].all()
    np.testing.assert_array_equal(part_of(T % 4, T, 1.0 * (T % 4 > 1)), T % 4 > 1)


def audit(folder, X, copies, attacks=("ndr",), knowledge=("perfect",), key=None):
    how = {"aligned": True} if key is None else {"key": key}
    who = {"attacks": list(attacks), "coalitions": "subsets", "knowledge": list(knowledge)}
    return audited_files(folder, X, copies, scheme=how, **who)


def taught(result, coalition=(1,), attribute="*"):
    found = cells(
        result, attack="fitted-to-originals", metric="normalized_error", attribute=attribute
    )
    return next(r for r in found if r.coalition == coalition)


def frame(values):
    return pd.DataFrame(values, columns=["a", "b"])


@QUIETLY
def test_moved_rows_fail_the_exposure_and_shuffled_ones_hold_it(tmp_path):
    X = np.exp(RNG(20).normal(size=(2_000, 2)))
    moved = audit(tmp_path, frame(X), [frame(np.roll(X, 1, axis=0))])
    assert taught(moved).value < 1e-9
    assert moved.expectations[0].status == "fails"
    shuffled = audit(tmp_path, frame(X), [frame(RNG(2**40 + 22).permutation(X))])
    assert taught(shuffled).value > 0.95
    assert shuffled.expectations[0].status == "holds"


@QUIETLY
@pytest.mark.parametrize("key", ["{0}", "{1:04}-{0}/{2:04}"])
def test_keys_that_count_by_an_attribute_give_it_away(tmp_path, key):
    rng = RNG(17)
    X = frame(rng.uniform(-2.0, 2.0, (1_000, 2)))
    places = X["b"].rank().astype(int) + 1_000, rng.permutation(1_000), rng.permutation(1_000)
    keyed = X.assign(id=[key.format(*each) for each in zip(*places, strict=True)])
    copy = keyed.assign(**{name: X[name] + 3.0 * rng.standard_normal(1_000) for name in "ab"})
    result = audit(tmp_path, keyed, [copy], key="id")
    assert taught(result, attribute="b").value < 0.05 < 0.8 < taught(result, attribute="a").value


COVERT = [
    planted_cases.permuted_bins, planted_cases.bins_of_the_record, planted_cases.signs_across_attributes, planted_cases.Bands, planted_cases.FineBands,
    planted_cases.ScaleByRecord, planted_cases.signs_of_three_copies, planted_cases.sizes_that_tell_signs, planted_cases.decimals,
    planted_cases.ordered_by_record, planted_cases.the_row_before, planted_cases.ranks_that_add_up,
]  # fmt: skip
"""Leaks that keep corner-wave's covariance."""


def release(leak=None, rows=10_000, seed=1, kind="skewed"):
    """Return a table and copies at levels 0.3, 0.6 and 0.9."""
    rng = RNG(seed)
    x = rng.standard_normal((rows, 2)) @ np.array([[1.0, 0.5], [0.0, 0.9]])
    makes = {"skewed": np.exp, "heap": lambda v: np.maximum(v, 0.0), "normal": np.positive}
    x = makes.get(kind, lambda v: np.round(40 + 9 * v))(x)
    g = rng.standard_normal((3, rows, 2))
    honest = g.copy()
    if leak is not None:
        leak().innovations(x, g, rng)
    here = rng.uniform(size=(rows, 1)) < 0.5
    steps = np.where(here, g, honest) * np.sqrt(0.3) * x.std(axis=0)
    return x, [x + z for z in np.cumsum(steps, axis=0)]


def gain_of(x, copies):
    found = (tuple(part.tolist()) for part in correlations(x, copies))
    return records.InsiderGain(1, (1, 2, 3), *found, len(x))


def verdicts(found):
    whole = records.Pooling(True, records.NoiseGain(2e-5, 2, 40_000), insider=found)
    for changes in ({}, {"proved": False}, {"sufficient": None, "noise": None}):
        held = {(1, 2, 3): replace(whole, **changes)}
        release = records.ReleaseEvidence({}, "s", "s", 3, 1, 20_000, held)
        yield NoCollusionGain().judge(records.Evidence([], [release]))


@pytest.mark.slow
@pytest.mark.parametrize("leak", COVERT, ids=lambda leak: leak.name)
def test_a_leak_with_the_covariance_of_lawful_copies_is_never_acquitted(leak):
    x, copies = release(leak)
    found = gain_of(x, copies)
    assert max(found.gain) > 0.008
    assert all(one.status != "holds" for one in verdicts(found))


@pytest.mark.slow
@pytest.mark.parametrize(("leak", "p", "n"), [(None, 1.0, 4_000), (None, 0.01, 10_000), (COVERT[0], 1.0, 10_000)])  # fmt: skip
def test_under_a_proved_law_rows_grow_if_scores_or_a_first_look_say_so(leak, p, n):
    x, copies = release(leak)
    levels = np.minimum.outer([0.3, 0.6, 0.9], [0.3, 0.6, 0.9])
    law = KroneckerNoise(levels, np.diag(x.var(axis=0)), one_process=True)
    assert insider_gains([(1, 2, 3)], x, copies, law, p)[1, 2, 3].rows == n


def test_honest_copies_of_a_series_gain_nothing():
    """Residuals of near rows depend on one another: a learner that forgets it finds r = 0.09."""
    rng = RNG(7)
    x = np.cumsum(rng.standard_normal((3_000, 1)), axis=0)
    steps = x.std() * np.sqrt(0.5) * rng.standard_normal((2, 3_000, 1))
    found = gain_of(x, [x + z for z in np.cumsum(steps, axis=0)])
    assert abs(found.correlation[0]) < 4 * found.std_error[0] < 0.12


@pytest.mark.slow
def test_honest_noise_on_a_skewed_table_holds_and_names_the_adversaries():
    lawful, stated, silent = verdicts(gain_of(*release(rows=8_000)))
    assert [one.status for one in (lawful, stated, silent)] == ["holds"] * 3
    named = r"no (linear or )?boosted-tree attack beyond 0\."
    assert all(re.search(named, one.why) for one in (lawful, stated, silent))


@pytest.mark.slow
def test_the_test_of_a_gain_is_valid_on_four_tables():
    kinds = ("skewed", "heap", "normal", "ages")
    found = [gain_of(*release(rows=1_500, seed=s, kind=kind)) for s in range(6) for kind in kinds]
    p = [gain.p_values(place, 0.0)[1] for gain in found for place in (0, 1)]
    # the two attributes of a release share its noise: mean 2.4, deviation at most 2·√(24·0.05·0.95)
    assert np.sum(np.array(p) < 0.05) <= 2.4 + 3 * 2.14
    assert np.sum(np.array(p) < 0.01) <= 2


def test_without_proof_a_learner_that_cannot_see_leaves_it_undecided():
    coarse = records.InsiderGain(1, (1, 2, 3), (0.0, 0.0), (0.08, 0.08), (500.0, 500.0), 2_000)
    for blind in (None, coarse):
        assert [one.status for one in verdicts(blind)] == ["holds", "undecided", "undecided"]


@pytest.mark.parametrize(
    ("gain", "status"), [(-0.08, "holds"), (0.009, "holds"), (0.08, "undecided"), (0.5, "fails")]
)
def test_an_attack_on_files_refutes_and_leaves_the_rest_to_the_learner(gain, status):
    attack = records.Measurement(
        {}, "s", "perfect", "noise-density", (1, 2, 3), (0.3,), 1, "a", "collusion_gain", gain,
        0.08, None, None, None, "ok", None, "jackknife",
    )  # fmt: skip
    learner = records.InsiderGain(1, (1, 2, 3), (0.0, 0.0), (0.02, 0.02), (500.0, 500.0), 2_000)
    release = records.ReleaseEvidence({}, "s", "published", 3, 1, 2_000, {(1, 2, 3): records.Pooling(None, None, insider=learner, proved=False)})  # fmt: skip
    assert release.from_files
    assert NoCollusionGain().judge(records.Evidence([attack], [release])).status == status


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
