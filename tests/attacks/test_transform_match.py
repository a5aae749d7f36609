"""Transform match on public transforms."""

import numpy as np
import pytest

import auditor
from auditor.base.errors import NotApplicable
from auditor.schemes.linear_maps import cosine_transform
from auditor_attacks.transform_match import Named


def table(rows=300, N=5, seed=0):
    rng = np.random.default_rng(seed)
    return 1e3 + rng.exponential(size=(rows, N)) @ rng.normal(size=(N, N)) + 10 * np.arange(N)


def projected(X, dimensions, **more):
    return auditor.perturb(
        X,
        "random-projection",
        [0] * more.get("copies", 1),
        seed=1,
        dimensions=dimensions,
        matrix="dct",
        **more,
    )


def attacked(release, knowledge, **more):
    return auditor.attack("transform-match", release, knowledge=knowledge, seed=3, **more)


KNOWLEDGE = ["perfect", {"known-records": 1}, {"unmatched-records": 40}]


def test_two_attributes_by_hand():
    """C = [[1, 1], [1, −1]]/√2."""
    C = cosine_transform(2)
    np.testing.assert_allclose(C, np.array([[1, 1], [1, -1]]) / np.sqrt(2), atol=1e-15)
    y, c = np.sqrt([[2.0, 8.0]]), np.array([[3.0, 1.0]]) @ C.T
    named = Named.of(C, c[0], np.zeros((2, 2)), 1, (y.T - c) ** 2)
    np.testing.assert_array_equal(named.kept, [1, 0])
    np.testing.assert_allclose(named.rows([y]), [[3.0, 1.0]])


@pytest.mark.parametrize("knowledge", KNOWLEDGE, ids=str)
@pytest.mark.parametrize("coalition", [[2, 3]], ids=str)
def test_a_transform_that_keeps_all_hides_nothing(knowledge, coalition):
    found = attacked(projected(table(), 5, copies=3), knowledge, coalition=coalition)
    assert found.normalized_error < 1e-20
    assert found.theory == pytest.approx(0.0, abs=1e-20)


@pytest.mark.parametrize(
    ("scheme", "level", "more"),
    [("rotation", 0, {}), ("rotation-noise", 0.1, {}), ("random-projection", 0, {"dimensions": 3})],
)
def test_a_secret_matrix_is_refused_with_the_reason(scheme, level, more):
    release = auditor.perturb(table(), scheme, [level], seed=1, **more)
    with pytest.raises(NotApplicable, match="the matrix of this scheme is secret"):
        attacked(release, {"known-records": 5})
