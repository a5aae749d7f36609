"""Plugins that break their contract, and the check that finds each."""

import itertools

import numpy as np
import pandas as pd
import pytest
from pydantic import ConfigDict

from auditor import plugin
from auditor.data.source import NORMAL, RecordLaw
from auditor.schemes.replacement.base import FreshCopies
from auditor.schemes.uniform import Uniform
from auditor.testing import ContractError, check_attack, check_scheme, check_source


def caught(check, cls, name, *words):
    with pytest.raises(AssertionError) as found:
        check(cls)
    assert isinstance(found.value, ContractError)
    message = str(found.value)
    assert found.value.check == name, message
    assert message.startswith(f"{cls.kind} {cls.name!r} fails the check {name!r}: expected ")
    assert "found" in message
    for word in words:
        assert word in message
    return message


class Average(plugin.LinearAttack):
    """An honest average of the copies."""

    name = "average"
    assumes = "Nothing at all is assumed."
    wins = "Wherever the noise of copies is independent."

    def affine(self, view):
        return plugin.Affine(np.kron(view.weights, np.eye(view.width)), np.zeros(view.width))


class First(plugin.RowAttack):
    """An honest estimate: the first copy unchanged."""

    name = "first"
    assumes, wins = Average.assumes, Average.wins

    def fit(self, view, blocks):
        return Rows(self, view)


class Rows(plugin.Reconstruction):
    def __init__(self, attack, view):
        self.attack, self.view = attack, view

    def rows(self, copies):
        return (
            self.attack.estimate(copies) if hasattr(self.attack, "estimate") else copies[0].copy()
        )


@pytest.mark.parametrize("cls", [Average, First])
def test_an_honest_attack_passes(cls):
    check_attack(cls)


def but(base=Average, **attributes):
    return type("Broken", (base,), {"__doc__": base.__doc__, **attributes})


def offset(of):
    """The average of the copies plus `of(self, view)`."""
    return {
        "affine": lambda self, view: plugin.Affine(Average().affine(view).weights, of(self, view))
    }


def seen(self):
    self.calls = getattr(self, "calls", 0) + 1
    return self.calls


def writes_to_the_view(self, view, force=False):
    if force:
        view.centre.flags.writeable = True
    view.centre[0] += 1.0
    return Average().affine(view)


def writes_to_the_copies_by_force(self, copies):
    owner = copies[0]
    while owner.base is not None:
        owner = owner.base
    owner[0] = 0.0
    return copies[0].copy()


def refuses(self, view, reason="not today"):
    raise plugin.NotApplicable(reason)


def refuses_now_and_then(self, view):
    return Average().affine(view) if seen(self) < 5 else refuses(self, view)


def exits(self, view):
    raise SystemExit(0)


def refuses_by_a_key(self, family, knowledge):
    raise KeyError(family)


class NoProbabilities(plugin.CategoricalAttack):
    """Says that every value has probability 1."""

    name = "no-probabilities"
    assumes, wins = Average.assumes, Average.wins

    def infer(self, view):
        inference = plugin.Inference()
        inference.prior = np.full(view.size, 1.0 / view.size)
        inference.posterior = lambda copies: np.ones((copies[0].size, view.size))
        return inference


class Undescribed(plugin.PluginParameters):
    """One."""

    share: float = 0.5


class TakesAnything(plugin.PluginParameters):
    """Any."""

    model_config = ConfigDict(extra="ignore")


def first(estimate):
    return but(First, estimate=lambda self, copies: estimate(copies))


COUNT = itertools.count()
WRITES, RANDOM = "leaves what it is shown as it is", "deterministic"
ANSWERS, SHAPE = "answers or refuses", "finite and of the right shape"


@pytest.mark.parametrize(
    ("cls", "name", "words"),
    [
        (but(affine=writes_to_the_view), WRITES, ["by corner-wave"]),
        (but(affine=lambda self, view: writes_to_the_view(self, view, True)), WRITES, []),
        (first(lambda copies: copies[0].__isub__(1.0)), WRITES, []),
        (but(First, estimate=writes_to_the_copies_by_force), WRITES, []),
        (but(**offset(lambda self, view: np.random.default_rng().normal(size=view.width))), RANDOM, ["copies [1, 2, 3]"]),
        (but(**offset(lambda self, view: np.full(view.width, 1.0 * next(COUNT)))), RANDOM, []),
        (but(**offset(lambda self, view: np.full(view.width, 1.0 * seen(self)))), RANDOM, []),
        (but(affine=refuses_now_and_then), RANDOM, []),
        (first(lambda copies: copies[0] - copies[0].mean(axis=0)), "record by record", []),
        (but(affine=exits), ANSWERS, ["SystemExit"]),
        (but(check=refuses_by_a_key), ANSWERS, ["KeyError", "additive"]),
        (first(lambda copies: copies[0] + 0.0 * copies[0][1]), ANSWERS, ["IndexError"]),
        (but(**offset(lambda self, view: np.linalg.inv(view.data_moments[1])[0])), ANSWERS, ["LinAlgError", "Singular matrix"]),
        (but(**offset(lambda self, view: np.zeros(view.width) + view.copies[1])), ANSWERS, ["IndexError", "copies [1]"]),
        (but(**offset(lambda self, view: np.eye(view.width)[2])), ANSWERS, ["IndexError", "on one attribute by"]),
        (but(affine=lambda self, view: refuses(self, view, "")), ANSWERS, ["a reason"]),
        (but(**offset(lambda self, view: np.full(view.width, np.nan))), SHAPE, []),
        (but(affine=lambda self, view: plugin.Affine(np.eye(view.width + 1), np.zeros(view.width))), SHAPE, []),
        (first(lambda copies: copies[0][1:].copy()), SHAPE, []), (NoProbabilities, SHAPE, []),
        (but(affine=refuses), "answers somewhere", []),
        (but(families=frozenset({"no-such-family"})), "answers somewhere", []),
        (but(knowledge=("perfect",), check=lambda self, family, knowledge: None), "refuses unusable knowledge", []),
        (but(knowledge=("perfekt",)), "refuses unusable knowledge", []),
        (but(__doc__="Short."), "documented", []), (but(Parameters=Undescribed), "parameters described", []),
        (but(Parameters=TakesAnything), "unknown parameters refused", []),
        (but(wins=""), "says when it wins", []),
    ],
)  # fmt: skip
def test_an_attack_that_breaks_its_contract_is_caught(cls, name, words):
    caught(check_attack, cls, name, *words)


class Fresh(plugin.AdditiveScheme):
    """Fresh noise in every copy, as stated."""

    name = "fresh"
    claims = "Nothing under collusion."
    factor = 1.0

    def level_covariance(self, levels):
        return np.diag(np.asarray(levels, dtype=float))

    def plan(self, levels, existing=0):
        return [
            plugin.Step(k, ((0, 1.0),), ((k, float(np.sqrt(level * self.factor))),))
            for k, level in enumerate(levels, 1)
            if k > existing
        ]


class Drawn:
    """Normals of the stated law; a broken scheme overrides one method."""

    def __init__(self, levels, law, key, existing):
        self.levels, self.law, self.key, self.existing = levels, law, key, existing

    def rng(self, copy, index):
        return np.random.default_rng([self.key.seed, copy, index])

    def normals(self, rng, shape):
        return rng.standard_normal(shape)

    def block(self, index, x, out, existing=0):
        root = np.linalg.cholesky(self.law.shape)
        for copy in range(self.existing, len(self.levels)):
            out[copy][...] = (
                x
                + np.sqrt(self.levels[copy]) * self.normals(self.rng(copy, index), x.shape) @ root.T
            )


class ByHand(Fresh):
    __doc__ = Fresh.__doc__
    sampler_class = Drawn

    def sampler(self, levels, table, key, existing=0):
        return self.sampler_class(levels, self.law(levels, table), key, existing)


def test_an_honest_scheme_passes():
    check_scheme(ByHand)


def broken(**methods):
    return but(ByHand, sampler_class=type("Sampler", (Drawn,), methods))


def one_normal_for_all_columns(self, index, x, out, existing=0):
    deviation = np.sqrt(np.diag(self.law.shape))
    for copy in range(self.existing, len(self.levels)):
        out[copy][...] = (
            x
            + np.sqrt(self.levels[copy])
            * self.rng(copy, index).standard_normal((len(x), 1))
            * deviation
        )


def one_noise_for_all_copies(self, index, x, out, existing=0):
    noise = self.rng(0, index).standard_normal(x.shape) @ np.linalg.cholesky(self.law.shape).T
    for copy in range(self.existing, len(self.levels)):
        out[copy][...] = x + np.sqrt(self.levels[copy]) * noise


def noise_that_hangs_on_the_data(self, index, x, out, existing=0):
    Drawn.block(self, index, x, out, existing)
    for copy in out[self.existing :]:
        copy += 0.1 * (x - x.mean(axis=0))


def rows_without(self, rng, shape):
    return np.sqrt(1.25) * rng.standard_normal(shape) * (rng.random((shape[0], 1)) < 0.8)


@pytest.mark.slow_after_first
@pytest.mark.parametrize(
    ("methods", "words"),
    [
        ({"block": one_normal_for_all_columns}, ("length",)), ({"block": one_noise_for_all_copies}, ("length",)),
        ({"block": noise_that_hangs_on_the_data}, ()),
        ({"normals": lambda self, rng, shape: 0.96 * rng.standard_normal(shape)}, ()),
        ({"normals": lambda self, rng, shape: rng.standard_normal(shape) + 0.05}, ("noise of copy",)),
        ({"normals": lambda self, rng, shape: rng.uniform(-np.sqrt(3.0), np.sqrt(3.0), shape)}, ()),
        ({"normals": rows_without}, ()),
    ],
)  # fmt: skip
def test_a_scheme_that_breaks_its_law_is_caught(methods, words):
    caught(check_scheme, broken(**methods), "follows its law", "by the stated law", *words)


def test_a_plan_that_breaks_the_law_is_caught_without_drawing():
    caught(
        check_scheme, but(Fresh, factor=0.9), "plan draws from the law", "between copies 2 and 2"
    )


def half_when_extended(self, rng, shape):
    return rng.standard_normal(shape) * (0.5 if self.existing else 1.0)


def first_copies_again(self, index, x, out, existing=0):
    self.existing = 0
    Drawn.block(self, index, x, out, existing)


def writes(self, index, x, out, existing=0):
    x += 1.0


def raises(self, index, x, out, existing=0):
    raise KeyError("spread")


def rng_of(key):
    return {"rng": lambda self, copy, index: np.random.default_rng(key(self, copy, index))}


@pytest.mark.parametrize(
    ("methods", "name"),
    [
        ({"normals": half_when_extended}, "extension follows the law"),
        ({"block": first_copies_again}, "extension leaves copies as they are"),
        ({"block": writes}, "leaves what it is shown as it is"), ({"block": raises}, "draws"),
        ({"normals": lambda self, rng, shape: np.full(shape, np.nan)}, "finite"),
        (rng_of(lambda self, copy, index: None), "same seed, same copies"),
        (rng_of(lambda self, copy, index: [copy, index]), "another seed, other copies"),
        (rng_of(lambda self, copy, index: [self.key.seed, copy]), "own draws in every block"),
        (rng_of(lambda self, copy, index: [self.key.seed, seen(self), index]), "blocks in any order"),
    ],
)  # fmt: skip
def test_a_scheme_that_breaks_its_contract_is_caught(methods, name):
    caught(check_scheme, broken(**methods), name)


def test_a_scheme_that_takes_impossible_levels_is_caught():
    lax = but(Fresh, check_levels=lambda self, levels: None)
    caught(check_scheme, lax, "refuses impossible levels", "nan")


class KeptMore(FreshCopies):
    """Keeps more values than the scheme says."""

    def copy(self, number):
        values = super().copy(number)
        rng = np.random.default_rng([self.key.seed, number, self.key.block])
        return np.where(rng.random(values.size) < 0.05, self.original, values)


class PairedCoins(FreshCopies):
    """Draws rows in pairs by one coin: each row alone follows the law."""

    def _drawn(self, level, rng):
        n = self.original.size
        keep = np.repeat(rng.random(n // 2 + 1) < level, 2)[:n]
        drawn = np.where(keep, self.original, rng.integers(0, self.size, n))
        return drawn.astype(self.original.dtype)


@pytest.mark.parametrize(("copies", "says"), [
    (KeptMore, ("values kept in copy", "100,000 rows")),
    (PairedCoins, ("the coin of copy", "its own value 1 row earlier")),
])  # fmt: skip
def test_categories_that_break_their_law_are_caught(copies, says):
    scheme = but(Uniform, copies=lambda self, *parts: copies(*parts))
    caught(check_scheme, scheme, "follows its law", *says)


class Normals(plugin.Source):
    """An honest source: two columns of normals."""

    name = "normals"
    description = "Drawn"

    def width(self):
        return 2

    def frame(self, rows, rng):
        return pd.DataFrame(rng.normal(size=(rows or 100, 2)), columns=["a", "b"])


def drawing(draw, names="ab"):
    """A source that draws `rows` rows by `draw(rows, rng)`."""

    def frame(self, rows, rng):
        return pd.DataFrame(draw(rows or 100, rng), columns=list(names))

    return {"frame": frame}


def normals(rows, rng):
    return rng.normal(size=(rows, 2))


def signs(rows, rng):
    return rng.normal(size=(rows, 1)) * np.column_stack([np.ones(rows), rng.choice([-1, 1], rows)])


BOTH_NORMAL, LAW = RecordLaw({"a": NORMAL, "b": NORMAL}), "follows its law"
NO_MARGINS = {"law": lambda self: RecordLaw()}
BROKEN_SOURCES = [
    ({"frame": lambda self, rows, rng: normals(rows, rng)}, "a table"), ({"frame": lambda self, rows, rng: 1 / 0}, "a table"),
    (drawing(normals, "aa"), "unique names"), (drawing(lambda rows, rng: normals(50, rng)), "as many rows as asked"),
    (drawing(lambda rows, rng: np.full((rows, 2), np.inf)), "finite"),
    (drawing(lambda rows, rng: normals(rows, np.random.default_rng())), "same seed, same table"),
    ({"domains": lambda self: {"c": ["x"]}}, "labels and domains"),
    ({"domains": lambda self: {"a": [0.0]}}, "labels and domains"), ({"law": lambda self: 7}, "a law"),
    ({"law": lambda self: RecordLaw({"a": NORMAL})}, "a law"),
    (drawing(lambda rows, rng: rng.exponential(size=(rows, 2))) | NO_MARGINS, LAW), (drawing(signs) | NO_MARGINS, LAW),
    (drawing(lambda rows, rng: np.sort(normals(rows, rng), axis=0)) | NO_MARGINS, LAW),
    (drawing(lambda rows, rng: normals(rows, rng) @ [[1.0, 0.2], [0.0, 1.0]]) | {"law": lambda self: BOTH_NORMAL}, LAW),
]  # fmt: skip


@pytest.mark.parametrize(("methods", "name"), BROKEN_SOURCES)
def test_a_source_that_breaks_its_contract_is_caught(methods, name):
    caught(check_source, but(Normals, **methods), name)


@pytest.mark.parametrize("law", [None, RecordLaw(), BOTH_NORMAL])
def test_an_honest_source_passes(law):
    check_source(Normals if law is None else but(Normals, law=lambda self: law))
