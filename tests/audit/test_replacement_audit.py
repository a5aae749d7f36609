"""Audits of replacements that are not uniform."""

import numpy as np
import pytest

import auditor
from auditor import registry
from auditor.schemes.replacement.law import UniformLaw
from auditor.schemes.uniform import UniformMultilevel
from auditor_attacks.posterior import Bayes

PRIOR, PI, WITH_ZERO = (
    np.array([0.5, 0.3, 0.15, 0.05]),
    np.array([0.1, 0.2, 0.3, 0.4]),
    np.array([0.5, 0.0, 0.3, 0.2]),
)


def law_of(levels, pi, multilevel=True):
    return UniformLaw(tuple(levels), len(pi), multilevel, tuple(pi))


@pytest.mark.parametrize("multilevel", [True, False])
@pytest.mark.parametrize("pi", [PI, WITH_ZERO])
@pytest.mark.parametrize("levels", [(0.3, 0.1, 0.5), (0.2, 0.0, 1.0)])
def test_posterior_equals_bayes_over_the_whole_joint_law(multilevel, pi, levels):
    law = law_of(levels, pi, multilevel)
    joint = law.joint(PRIOR).reshape(4, -1)
    possible = np.flatnonzero(joint.any(axis=0))
    copies = [np.asarray(part, np.uint8) for part in np.unravel_index(possible, (4,) * len(levels))]
    np.testing.assert_allclose(
        Bayes(PRIOR, law).posterior(copies),
        (joint[:, possible] / joint[:, possible].sum(axis=0)).T,
        atol=1e-13,
    )


class OtherReplacements(UniformMultilevel):
    """States the table's own shares, and draws uniformly."""

    name = "lie-other-replacements"

    def copies(self, original, size, key):
        return UniformMultilevel().copies(original, size, key)


def document(**more):
    return {
        "schema": 1, "title": "test", "seed": 1, "attacks": ["posterior"], "coalitions": ["subsets"], "expect": ["marginal-is-uniform"],
        "data": {"source": "occupation-like", "rows": 8000},
        "schemes": [{"name": name, "replacement": "prior", "levels": [0.3, 0.6]} for name in ("lie-other-replacements", "uniform-multilevel")],
    } | more  # fmt: skip


def test_an_audit_finds_other_replacements_and_leaves_honest_ones_alone():
    names = ("lie-other-replacements", "uniform-multilevel")
    expect = [
        *({"marginal-is-uniform": {"scheme": name}} for name in names),
        "noise-follows-law", {"no-collusion-gain": {"scheme": "uniform-multilevel"}},
    ]  # fmt: skip
    with registry.lent("scheme", OtherReplacements):
        result = auditor.run(document(expect=expect))
    assert [r.status for r in result.expectations] == ["fails", "holds", "fails", "holds"], [
        r.why for r in result.expectations
    ]
    frame = result.frame().query("scheme == 'uniform-multilevel' and metric == 'epsilon'")
    share = 1 / (np.exp(frame.value.max()) - 1) * 0.6 / 0.4  # the rarest occupation's
    assert 0.01 < share < 0.02
