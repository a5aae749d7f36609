"""Statements of schemes about themselves."""

import numpy as np
import pandas as pd
import pytest

import auditor
from auditor import registry

SCHEMES = {name: registry.get("scheme", name) for name in registry.names("scheme")}
X = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 3)), columns=list("abc"))
COLOURS = pd.DataFrame({"colour": pd.Categorical(["red", "blue", "green", "red", "blue"] * 8)})


def original_of(scheme):
    if SCHEMES[scheme].engine != "numeric":
        return COLOURS
    return (10 * X).round() if SCHEMES[scheme].on_lattice else X


@pytest.mark.parametrize(
    "scheme",
    [
        name
        for name, cls in SCHEMES.items()
        if cls.makes_copies and cls.level_of_original is not None
    ],
)
def test_a_copy_at_the_level_of_the_original_is_the_original(scheme):
    original = original_of(scheme)
    (copy,) = auditor.perturb(
        original, scheme, [SCHEMES[scheme].level_of_original], seed=1, **SCHEMES[scheme].trial
    ).copies
    pd.testing.assert_frame_equal(copy, original)
