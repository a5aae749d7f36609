"""Knowledge of published margins and rules."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from sklearn.tree import DecisionTreeClassifier

import auditor
from auditor.adversary.knowledge import PublishedRules, Tree
from auditor.adversary.published import (
    PublishedTable,
    check_knowledge,
    grown_tree,
    maximum_entropy,
    published_prior,
)
from auditor.base import DataError
from auditor.data.columns.categorical_table import Attribute
from auditor.runs.perturb import as_table
from auditor.scenario.read_plugins import parse_knowledge

properties = settings(max_examples=30, deadline=None, derandomize=True)
ABC = (Attribute("a", (0, 1)), Attribute("b", ("x", "y", "z")), Attribute("c", (0, 1)))


def table(seed, size=12):
    return np.random.default_rng(seed).dirichlet(np.ones(size))


def rules(**more):
    found = parse_knowledge({"rules": more})
    assert isinstance(found, PublishedRules)
    return found


def test_hand_value_of_two_margins_and_a_posterior():
    people = [(0, 0)] * 6 + [(0, 1)] + [(1, 1)] * 3
    X = pd.DataFrame(people, columns=["a", "b"]).astype("category")
    release = auditor.perturb(X, "uniform", [0.5], seed=1)
    found = auditor.attack(
        "posterior", release, knowledge={"rules": {"margins": ["a", "b"]}}
    ).posterior
    prior = np.array([0.42, 0.28, 0.18, 0.12])
    shown = release.copies[0].astype(int).to_numpy() @ [2, 1]
    T = np.where(np.eye(4, dtype=bool), 0.625, 0.125)[shown]
    np.testing.assert_allclose(
        found, prior * T / (prior * T).sum(axis=1, keepdims=True), atol=1e-12
    )
    exactly = (0.12 * 5) / (0.88 + 0.12 * 5)
    assert found[shown == 3][0, 3] == pytest.approx(exactly)


@given(seed=st.integers(0, 2**32 - 1))
@settings(properties, max_examples=5)
def test_fitting_written_out_value_by_value(seed):
    own, published = table(seed), (("a", "b"), ("b", "c"), ("a", "c"))
    domain = list(product((0, 1), (0, 1, 2), (0, 1)))
    truth, q = dict(zip(domain, own, strict=True)), dict.fromkeys(domain, 1 / 12)
    for _ in range(200):
        for names in published:
            kept = ["abc".index(name) for name in names]
            for cell in {tuple(x[j] for j in kept) for x in domain}:
                inside = [x for x in domain if tuple(x[j] for j in kept) == cell]
                factor = sum(truth[x] for x in inside) / sum(q[x] for x in inside)
                for x in inside:
                    q[x] *= factor
    found = published_prior(PublishedRules(published), ABC, own)
    np.testing.assert_allclose(found, list(q.values()), atol=1e-6)


@given(seed=st.integers(0, 2**32 - 1))
@properties
def test_stated_figures_are_the_tables_own_where_they_are_its(seed):
    own, rule = table(seed), {"if": {"a": 1, "c": 0}, "then": {"b": "y"}}
    share = own.reshape(2, 3, 2)[1, :, 0]
    stated = rule | {"confidence": share[1] / share.sum(), "support": share[1]}
    found, same = (published_prior(rules(**{"if-then": [r]}), ABC, own) for r in (stated, rule))
    np.testing.assert_allclose(found, same, atol=1e-12)
    assert found.reshape(2, 3, 2)[1, 1, 0] == pytest.approx(share[1])


def test_a_tree_by_hand():
    own = np.zeros((2, 3, 2))
    own[:, 0, 0], own[:, 1, 1] = 0.2, 0.15
    own[0, 2, 0], own[1, 2, 1] = 0.2, 0.1
    cells, _ = grown_tree(Tree("c", ("a", "b"), 2), ABC, own.ravel(), ())
    leaves = cells.reshape(2, 3, 2)[:, :, 0] // 2
    assert (leaves[0, :2] == leaves[1, :2]).all()
    assert len({*leaves.ravel()}) == 4
    assert len({*(grown_tree(Tree("c", ("a", "b"), 1), ABC, own.ravel(), ())[0] // 2)}) == 3


@given(seed=st.integers(0, 2**32 - 1), depth=st.integers(1, 3))
@settings(properties, max_examples=15)
def test_of_columns_of_two_values_it_is_the_tree_that_scikit_learn_grows(seed, depth):
    columns = tuple(Attribute(name, (0, 1)) for name in "abcd")
    own = table(seed, 16)
    X = np.array(list(product((0, 1), repeat=4)))
    peer = DecisionTreeClassifier(criterion="entropy", max_depth=depth).fit(
        X[:, :3], X[:, 3], sample_weight=own
    )
    cells, shares = grown_tree(Tree("d", ("a", "b", "c"), depth), columns, own, ())
    found = np.bincount(cells, own, shares.size).reshape(-1, 2)[cells // 2]
    np.testing.assert_allclose(
        found / found.sum(axis=1, keepdims=True), peer.predict_proba(X[:, :3]), atol=1e-9
    )


def test_figures_that_cannot_all_be_true():
    certain = [
        {"then": {"a": 0}, "confidence": 0.9, "support": 0.9},
        {"then": {"a": 1}, "confidence": 0.5, "support": 0.5},
    ]
    with pytest.raises(DataError, match="cannot all be true"):
        published_prior(rules(**{"if-then": certain}), ABC, table(0))
    halves = np.repeat([0, 1], 2)
    # a cell that one table rules out and another fills
    with pytest.raises(DataError, match="cannot all be true"):
        maximum_entropy(
            [
                PublishedTable(halves, np.array([0.0, 1.0])),
                PublishedTable(np.array([0, 1, 1, 1]), np.array([0.5, 0.5])),
            ],
            4,
        )


def audited(X, tmp_path, level, *knowledge):
    X.to_csv(tmp_path / "x.csv", index=False)
    return auditor.run({
        "seed": 4, "data": {"source": str(tmp_path / "x.csv"), "categorical": list(X.columns), "disclosure": "figures"},
        "schemes": [{"name": "uniform", "levels": [level]}], "attacks": ["posterior"], "knowledge": list(knowledge),
        "expect": [{"exposure": {"attribute": "*", "unknown": {"at-least": 0.9}}}, {"matches-theory": {"metric": "normalized_error"}}],
    })  # fmt: skip


def people(rows=2000, linked=True):
    town, illness = np.random.default_rng(8).integers(4, size=(2, rows))
    return pd.DataFrame({"town": town, "illness": (town + 1) % 4 if linked else illness})


LINK = [
    {"if": {"town": t}, "then": {"illness": (t + 1) % 4}, "confidence": 1, "support": 0.25}
    for t in range(4)
]


def test_a_rule_of_confidence_1_reveals_all_at_retention_0(tmp_path):
    harmless = {"rules": {"margins": ["town", "illness"], "known": "town"}}
    leaks = [
        {"rules": {"if-then": LINK, "known": "town"}},
        {"rules": {"margins": [["town", "illness"]], "known": "town"}},
    ]
    safe, leaking = (
        audited(people(), tmp_path, 0, harmless),
        audited(people(), tmp_path, 0, harmless, *leaks),
    )
    assert [e.status for e in safe.expectations] == ["holds", "holds"]
    assert [e.status for e in leaking.expectations] == ["fails", "holds"]
    left = [record.value for record in leaking.measurements if record.metric == "normalized_error"]
    assert left == [
        pytest.approx(1.0, abs=0.01), pytest.approx(0.0, abs=1e-6), pytest.approx(0.0, abs=1e-6),
    ]  # fmt: skip


def test_a_rule_that_holds_for_nine_in_ten_lets_whoever_knows_a_infer_b(tmp_path):
    """Huang2005, section 3."""
    X = people().assign(
        illness=lambda x: x.illness.where(np.arange(2000) % 10 != 0, (x.town + 2) % 4)
    )
    rules = [{"if": {"town": t}, "then": {"illness": (t + 1) % 4}} for t in range(4)]
    found = audited(X, tmp_path, 0, {"rules": {"if-then": rules, "known": "town"}})
    figures = {r.metric: r.value for r in found.measurements}
    assert figures["accuracy"] == pytest.approx(0.9)
    assert figures["posterior_max"] == pytest.approx(0.9, abs=1e-9)


def test_what_the_table_does_not_have():
    data = as_table(pd.DataFrame({"x": [1.0, 2.0, 3.0]}))
    with pytest.raises(DataError, match="is of categories, and the table has none"):
        check_knowledge(rules(margins=["x"]), data)
    for known, path in (
        (rules(margins=[["a"], ["b", "d"]]), ("margins", 1, 1)),
        (rules(margins=["a"], known=["d"]), ("known", 0)),
        (rules(margins=["a"], known=["a", "b", "c"]), ("known",)),
        (rules(tree={"target": "d", "predictors": ["a"], "depth": 1}), ("tree", "target")),
        (rules(tree={"target": "a", "predictors": ["b", "d"], "depth": 1}), ("tree", "predictors", 1)),
        (rules(**{"if-then": [{"if": {"a": 1}, "then": {"d": 1}}]}), ("if-then", 0, "then", "d")),
        (rules(**{"if-then": [{"if": {"b": "w"}, "then": {"a": 1}}]}), ("if-then", 0, "if", "b")),
    ):  # fmt: skip
        with pytest.raises(DataError) as error:
            published_prior(known, ABC, table(0))
        assert error.value.path == path
