"""Nested k-anonymous copies: whatever is pooled shows the finest copy's classes; unions of classes keep k, ℓ, α and t; a cut is caught."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.errors import AuditorError
from auditor.runs.copy_files import write_copies
from auditor.runs.folder_release import read_release
from auditor.runs.perturb import perturb
from auditor.runs.run_scenario import run_scenario
from auditor.scenario.read import read_scenario
from auditor.schemes.generalisation.classes import (
    compose,
    from_columns,
    promises,
    ranges,
    sufficient,
    tells,
)
from auditor.schemes.generalisation.partition import bounds, merged
from auditor_reports.figures.reading import Reading
from auditor_reports.wording.verdict import verdict

NAME = "k-anonymity-multilevel"


def people(n: int, seed: int, values: int = 8) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(rng.integers(0, values, (n, 3)).astype(float), columns=["a", "b", "s"])


def copies_of(release) -> list[np.ndarray]:
    """The copies as an adversary reads them: classes from the columns that recipients get."""
    return [from_columns(copy.to_numpy(), [0, 1]) for copy in release.copies]


def members(*copies) -> set[frozenset[int]]:
    """Who shares a class in all of these copies."""
    keys = pd.DataFrame(np.stack([copy["class"] for copy in copies], axis=1))
    return {frozenset(rows) for rows in keys.groupby(list(keys.columns)).indices.values()}


# -- what unions of classes keep


@given(
    st.integers(1, 40),
    st.integers(1, 6),
    st.integers(1, 4),
    st.sampled_from(["equal", "ordered", "tree"]),
    st.integers(0, 2**32 - 1),
)
def test_every_union_of_classes_keeps_what_all_of_them_promise(n, classes, values, ground, seed):
    """Sums, unions, a concave entropy, a mean of shares and a convex distance: docs/method.md."""
    rng = np.random.default_rng(seed)
    finer, sensitive = rng.integers(0, classes, n), rng.integers(0, values, n).astype(float)
    coarser = rng.integers(0, classes, classes)[finer]
    tree = {place: (("low" if place < 2 else "high"), "all") for place in range(values)}
    kept, more = (
        promises(
            part[:, None], sensitive, sensitive, tree if ground == "tree" else ground, [1.0, 3.0]
        )
        for part in (finer, coarser)
    )
    assert more["anonymity_k"] >= kept["anonymity_k"]
    assert more["anonymity_distinct"] >= kept["anonymity_distinct"]
    assert more["anonymity_entropy"] >= kept["anonymity_entropy"] - 1e-12
    assert more["anonymity_alpha"] <= kept["anonymity_alpha"] + 1e-12
    assert more["anonymity_t"] <= kept["anonymity_t"] + 1e-12
    assert more["anonymity_size"] >= kept["anonymity_size"] - 1e-9
    assert more["anonymity_recursive(2)"] >= kept["anonymity_recursive(2)"] - 1e-12
    assert more["anonymity_recursive(3)"] >= kept["anonymity_recursive(3)"] - 1e-12
    assert more["anonymity_confidence"] <= kept["anonymity_confidence"] + 1e-12
    assert more.get("anonymity_range", 0.0) >= kept.get("anonymity_range", 0.0)


# -- classes are nested, in every order


@settings(max_examples=25)
@given(
    st.integers(12, 60),
    st.integers(2, 12),
    st.lists(st.integers(1, 12), min_size=1, max_size=4),
    st.integers(0, 2**32 - 1),
)
def test_whatever_is_pooled_shows_the_finest_copys_classes(n, values, levels, seed):
    """Any k in any order, repeated or not: a coalition's classes are its finest copy's, each of k records, with ranges of their own."""
    copies = copies_of(
        perturb(people(n, seed, values), NAME, levels, quasi=["a", "b"], sensitive="s")
    )
    for k, copy in zip(levels, copies, strict=True):
        assert min(map(len, members(copy))) >= k
        low, high = copy["low"], copy["high"]
        for one, other in itertools.combinations(map(min, members(copy)), 2):
            assert (
                np.minimum(high[one], high[other])[:2] < np.maximum(low[one], low[other])[:2]
            ).any(), "two classes overlap"
    for size in range(2, len(copies) + 1):
        for held in itertools.combinations(range(len(copies)), size):
            finest = min(held, key=lambda place: levels[place])
            assert members(*(copies[place] for place in held)) == members(copies[finest])
            low, high = ranges([copies[place] for place in held])
            np.testing.assert_array_equal(low, copies[finest]["low"])
            np.testing.assert_array_equal(high, copies[finest]["high"])


@settings(max_examples=12)
@given(st.permutations([2, 3, 5, 9]), st.integers(0, 3), st.integers(0, 2**32 - 1))
def test_a_copy_asked_for_later_is_what_it_would_have_been(levels, out, seed):
    frame = people(60, seed)
    whole = perturb(frame, NAME, levels, quasi=["a", "b"], sensitive="s")
    later = perturb(frame, NAME, levels[: out + 1], quasi=["a", "b"], sensitive="s")
    for k in levels[out + 1 :]:
        later = later.extend([k])
    for one, other in zip(whole.copies, later.copies, strict=True):
        pd.testing.assert_frame_equal(one, other)


def test_merging_by_hand():
    """Ages in classes 1–2, 3–4, 5, 6–9 of 2, 3, 2 and 2 records: behind the second are 5 of 9, the first cut with half of them."""
    Q = np.array([1.0, 2, 3, 3, 4, 5, 5, 6, 9])[:, None]
    finer = bounds(Q, Q, [np.array(rows) for rows in ([0, 1], [2, 3, 4], [5, 6], [7, 8])])
    made = merged(finer, 4)
    assert [sorted(rows) for rows in made.classes] in (
        [[0, 1, 2, 3, 4], [5, 6, 7, 8]],
        [[5, 6, 7, 8], [0, 1, 2, 3, 4]],
    )
    assert made.low[:, 0].tolist() == [1.0] * 5 + [5.0] * 4
    assert made.high[:, 0].tolist() == [4.0] * 5 + [9.0] * 4
    assert len(merged(finer, 5).classes) == 1


# -- leaks are caught


@pytest.fixture
def judged():
    """No collusion gain, judged of one scheme, and k by coalition."""

    def run(scheme=NAME, levels=(2, 4, 8), **use):
        frame = people(200, 3, 20)
        document = {
            "data": {"source": "inline", "values": {column: frame[column].tolist() for column in frame}},
            "schemes": [{"id": "it", "name": scheme, "quasi": ["a", "b"], "sensitive": "s", "levels": list(levels), **use}],
            "knowledge": [{"known-attributes": ["a", "b"]}], "coalitions": ["subsets"], "attacks": ["homogeneity"], "measures": ["anonymity"],
            "expect": [{"theorem-4": {}}],
        }  # fmt: skip
        result = run_scenario(read_scenario(document))
        (found,) = result.expectations
        k = {
            record.coalition: record.value
            for record in result.measurements
            if record.metric == "anonymity_k"
        }
        return found, k, result.model_copy(update={"expectations": []})

    return run


@pytest.mark.parametrize("use", [{}, {"already-out": 2, "levels": [8, 2, 4]}])
def test_theorem_4_holds_by_law_for_nested_copies(judged, use):
    found, k, result = judged(**use)
    assert found.status == "holds", found.why
    assert verdict(Reading(result), "it").finding == "no-gain"
    assert (
        "by classes and ranges, for every attack that reads these: one copy says all there is in each of 4 coalitions"
        in found.why
    )
    levels = use.get("levels", (2, 4, 8))
    for coalition, value in k.items():
        assert (
            value
            == min(k[copy,] for copy in coalition)
            >= min(levels[copy - 1] for copy in coalition)
        )


def test_theorem_4_fails_for_copies_made_apart(judged):
    """And the report says so where nobody asked, though the errors of pooled copies are those of one."""
    found, k, result = judged("k-anonymity", levels=(2, 3, 5))
    assert found.status == "fails"
    assert "no copy of" in found.why
    assert k[1, 2, 3] < 2
    nothing = {"value": 0.0, "std_error": 0.0, "ci_low": 0.0, "ci_high": 0.0}
    records = [
        record._replace(**nothing) if record.metric == "collusion_gain" else record
        for record in result.measurements
    ]
    told = verdict(Reading(result.model_copy(update={"measurements": records})), "it")
    assert told.finding == "gain"
    assert (
        told.sentence
        == "Pooling copies 1 and 2 leaves some record alone, where each of these copies has 2 or more in every class."
    )


def test_a_copy_tells_all_only_if_its_ranges_lie_within_the_others():
    """The same classes, but ranges that cross: together they say more; and what one copy suppresses another gives away."""
    values, numbers = np.array([[1.0, 7], [2, 7], [8, 7], [9, 7]]), np.array([0, 0, 1, 1])
    low, high = np.array([1.0, 1, 8, 8])[:, None], np.array([2.0, 2, 9, 9])[:, None]
    finer = compose(values, [0], numbers, low, high)
    whole = compose(values, [0], np.zeros(4, dtype=int), low * 0 + 1, high * 0 + 9)
    shifted = compose(values, [0], numbers, low + 0.5, high + 0.5)
    hidden = compose(values, [0], np.array([0, 0, -1, -1]), low, high)
    half_hidden = compose(values, [0], np.array([0, -1, 1, 1]), low, high)
    assert tells(finer, whole)
    assert not tells(whole, finer)
    assert not tells(finer, shifted)
    assert not tells(shifted, finer)
    assert tells(finer, hidden)
    assert not tells(hidden, finer)
    assert not tells(hidden, whole)  # it has the class of everybody else
    assert not tells(finer, half_hidden)  # which of its first class is suppressed there
    assert sufficient([(0, values, [finer, whole, shifted])], [(1, 2), (1, 3), (1, 2, 3)]) == {
        (1, 2): True,
        (1, 3): False,
        (1, 2, 3): False,
    }


def test_a_release_in_files_is_extended_as_one_in_memory(tmp_path):
    frame = people(60, 0)
    frame.to_csv(tmp_path / "people.csv", index=False)
    parameters = {"quasi": ["a", "b"], "sensitive": "s"}
    write_copies(
        str(tmp_path / "people.csv"), NAME, [2, 9], None, tmp_path / "out", None, None, parameters
    )
    later, whole = (
        read_release(frame, tmp_path / "out").extend([4]),
        perturb(frame, NAME, [2, 9, 4], **parameters),
    )
    for one, other in zip(later.copies, whole.copies, strict=True):
        pd.testing.assert_frame_equal(one, other)


# -- bad input


def test_parameters_and_tables_that_cannot_be_are_refused():
    frame = people(12, 0)
    for wrong, said in (
        ({"quasi": ["a", "a"], "sensitive": "s"}, "each quasi-identifier once"), ({"quasi": ["a", "s"], "sensitive": "s"}, "not the sensitive"),
        ({"quasi": ["c"], "sensitive": "s"}, "no attribute 'c'"), ({"quasi": ["a"], "sensitive": "s", "method": "full-domain"}, "method"),
        ({"quasi": ["a"], "sensitive": "s", "distinct": 20}, "does not satisfy the rules"),
    ):  # fmt: skip
        with pytest.raises(AuditorError, match=said):
            perturb(frame, NAME, [2], **wrong)
    with pytest.raises(AuditorError):
        perturb(frame.assign(a=np.nan), NAME, [2], quasi=["a"], sensitive="s")


def test_copies_of_another_table_are_not_extended():
    """A copy between two that are out is made of these: had they been made otherwise, it could cut their classes."""
    release = perturb(people(60, 0), NAME, [2, 9], quasi=["a", "b"], sensitive="s")
    other = perturb(people(60, 1), NAME, [2, 9], quasi=["a", "b"], sensitive="s")
    mixed = type(release)(release.original, other.copies, release.levels, release.scheme)
    with pytest.raises(AuditorError, match="not what this table gives"):
        mixed.extend([4])
