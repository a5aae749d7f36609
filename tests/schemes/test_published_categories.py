"""Published copies of categories."""

import warnings

import numpy as np
import pandas as pd
import pytest

import auditor
from auditor.base import AuditorWarning
from tests.audited import cells

LABELS = list("abcd")
PRAM = np.array(
    [[0.8, 0.1, 0.05, 0.05], [0.1, 0.7, 0.1, 0.1], [0.2, 0.2, 0.6, 0.0], [0.0, 0.1, 0.3, 0.6]]
)


class Folder:
    """An original of one column, and its copies."""

    def __init__(self, path, rows, seed=1):
        self.path, self.rng = path, np.random.default_rng(seed)
        self.x = self.rng.choice(4, rows, p=[0.5, 0.25, 0.15, 0.1])
        self.frame = pd.DataFrame({"job": np.array(LABELS)[self.x]})
        self.frame.to_csv(path / "x.csv", index=False)

    def put(self, name, codes, labels=LABELS):
        pd.DataFrame({"job": np.asarray(labels)[codes]}).to_csv(
            self.path / f"{name}.csv", index=False
        )
        return str(self.path / f"{name}.csv")

    def uniform(self, scheme, levels, seed=3):
        copies = auditor.perturb(self.frame, scheme, levels, seed=seed).copies
        return [
            self.put(f"{scheme}-{k}", copy["job"].map(LABELS.index).to_numpy())
            for k, copy in enumerate(copies, 1)
        ]

    def pram(self, k):
        return self.put(
            f"pram-{k}",
            (self.rng.random(self.x.size)[:, None] > PRAM[self.x].cumsum(axis=1)).sum(axis=1),
        )

    def document(
        self,
        copies,
        expect=(),
        knowledge=("perfect",),
        categorical=("job",),
        attacks=("posterior",),
        **more,
    ):
        return {
            "seed": 1, "data": {"source": str(self.path / "x.csv"), "categorical": categorical if isinstance(categorical, dict) else list(categorical)},
            "schemes": [{"name": "published", "copies": list(copies), **more}], "attacks": list(attacks), "coalitions": ["subsets"],
            "knowledge": list(knowledge), "expect": list(expect),
        }  # fmt: skip

    def audit(self, *given, **named):
        return auditor.run(self.document(*given, **named))


@pytest.fixture
def small(tmp_path):
    return Folder(tmp_path, 300)


@pytest.fixture
def large(tmp_path):
    return Folder(tmp_path, 4_000)


def figures(result, metric, **where):
    return {one.coalition: one for one in cells(result, metric=metric, attribute="*", **where)}


def verdicts(result):
    return {record.expectation: record.status for record in result.expectations}


def test_an_honest_multilevel_release_holds_without_a_word_of_its_law_and_nothing_is_theory(large):
    result = large.audit(large.uniform("uniform-multilevel", [0.7, 0.4, 0.55]),
                         ["no-collusion-gain", "noise-follows-law", "matches-theory"], ("perfect", "uniform-prior"))  # fmt: skip
    assert verdicts(result) == {
        "no-collusion-gain": "holds",
        "noise-follows-law": "undecided",
        "matches-theory": "undecided",
    }
    assert "by law: none is stated" in result.expectations[0].why
    measured = [record for record in result.measurements if record.attack is not None]
    assert measured
    assert all(record.status == "ok" and record.theory is None for record in measured)
    assert {record.error_bar for record in measured if record.metric == "accuracy"} == {"jackknife"}


@pytest.mark.slow
def test_a_stated_law_is_compared_and_no_proof(tmp_path):
    large = Folder(tmp_path, 8_000)
    honest = large.uniform("uniform-multilevel", [0.7, 0.4])
    law = {"levels": [0.7, 0.4], "law": {"scheme": "uniform-multilevel"}}
    expect = [
        "no-collusion-gain",
        "noise-follows-law",
        {"matches-theory": {"metric": "reconstruction_probability"}},
    ]
    result = large.audit(honest, expect, **law)
    assert set(verdicts(result).values()) == {"holds"}
    assert "no proof" in result.expectations[0].why
    fresh = large.audit(large.uniform("uniform", [0.7, 0.4]), expect[:2], **law)
    assert verdicts(fresh) == {"no-collusion-gain": "fails", "noise-follows-law": "fails"}


def test_a_leak_that_only_three_copies_show_is_never_acquitted(large):
    one, two = large.rng.integers(0, 4, (2, large.x.size))
    copies = [
        large.put(f"part-{k}", codes)
        for k, codes in enumerate((one, two, (large.x - one - two) % 4))
    ]
    assert verdicts(large.audit(copies, ["no-collusion-gain"], aligned=True)) == {
        "no-collusion-gain": "fails"
    }


def test_another_number_of_rows_and_columns_without_answers_are_refused(small):
    copy = small.frame.copy()
    copy.iloc[:-1].to_csv(small.path / "short.csv", index=False)
    copy.assign(other=1, job=None).to_csv(small.path / "empty.csv", index=False)
    mixed = copy.sample(frac=1, random_state=2**31 + 9)
    mixed.rename(columns={"job": "jobs"}).to_csv(small.path / "renamed.csv", index=False)
    for name, said in (("short", "299 rows where the original has 300"), ("empty", "0 records in common, with every answer; .*empty.csv lacks 300"), ("renamed", "no column 'job'"),
                       ("nowhere", "no such file")):  # fmt: skip
        with pytest.raises(auditor.AuditorError, match=said):
            small.audit([str(small.path / f"{name}.csv")])


def test_shuffled_rows_are_refused_and_independent_ones_are_warned_of(small):
    shuffled = small.put("shuffled", small.rng.permutation(small.x))
    with pytest.raises(auditor.AuditorError, match=r"shuffled.csv.*another order.*aligned: true"):
        small.audit([shuffled])
    noise = small.put("noise", small.rng.integers(0, 4, 300))
    with pytest.warns(
        AuditorWarning, match="nothing shows that the copy's rows are the original's"
    ):
        found = small.audit([noise])
    assert abs(figures(found, "estimated_retention(copy 1)")[1,].value) < 0.15
    with warnings.catch_warnings():
        warnings.simplefilter("error", AuditorWarning)
        small.audit([noise], aligned=True)


@pytest.mark.parametrize(("more", "said"), [
    ({"law": {"scheme": "uniform"}}, "needs the copies' levels"),
    ({"levels": [0.5, 0.5]}, "1 copies need as many levels"),
    ({"levels": [1.5]}, "retention probability"),
    ({"law": {"scheme": "uniform", "levels": 3}, "levels": [0.5]}, r"must be \{scheme: uniform\}"),
    ({"law": {"scheme": "k-anonymity"}}, r"must be \{scheme: uniform\}"),
])  # fmt: skip
def test_what_is_said_wrongly_of_copies_is_refused(small, more, said):
    with pytest.raises(auditor.AuditorError, match=said):
        small.audit([small.put("y", small.x)], **more)
