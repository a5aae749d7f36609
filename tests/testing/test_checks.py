"""Plugins that break their contract, and the check that finds each."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from pydantic import ConfigDict

from auditor.data.source import NORMAL, RecordLaw
from auditor.plugin import (
    AdditiveScheme,
    Affine,
    CategoricalAttack,
    Inference,
    LinearAttack,
    NotApplicable,
    PluginParameters,
    Reconstruction,
    RowAttack,
    Source,
    Step,
)
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


# -- attacks


class Average(LinearAttack):
    """Averages the copies, and does nothing wrong."""

    name = "average"
    assumes = "Nothing at all is assumed."
    wins = "Wherever the noise of copies is independent."

    def affine(self, view):
        return Affine(np.kron(view.weights, np.eye(view.width)), np.zeros(view.width))


class First(RowAttack):
    """Takes the first copy as it is, and does nothing wrong."""

    name = "first"
    assumes, wins = Average.assumes, Average.wins

    def fit(self, view, blocks):
        return Rows(self, view)


class Rows(Reconstruction):
    def __init__(self, attack, view):
        self.attack, self.view = attack, view

    def rows(self, copies):
        return (
            self.attack.estimate(copies) if hasattr(self.attack, "estimate") else copies[0].copy()
        )


@pytest.mark.parametrize("cls", [Average, First])
def test_an_honest_attack_passes(cls):
    check_attack(cls)


class WritesToTheView(Average):
    def affine(self, view):
        view.centre[0] = 0.0
        return super().affine(view)


class WritesToTheViewByForce(Average):
    def affine(self, view):
        view.centre.flags.writeable = True
        view.centre[0] += 1.0
        return super().affine(view)


class WritesToTheCopies(First):
    def estimate(self, copies):
        copies[0] -= copies[0].mean()
        return copies[0]


class WritesToTheCopiesByForce(First):
    def estimate(self, copies):
        owner = copies[0]
        while owner.base is not None:
            owner = owner.base
        owner[0] = 0.0
        return copies[0].copy()


@pytest.mark.parametrize(
    "cls", [WritesToTheView, WritesToTheViewByForce, WritesToTheCopies, WritesToTheCopiesByForce]
)
def test_an_attack_that_writes_to_what_it_is_shown_is_caught(cls):
    caught(check_attack, cls, "leaves what it is shown as it is", "by corner-wave")


class Random(Average):
    def affine(self, view):
        return Affine(super().affine(view).weights, np.random.default_rng().normal(size=view.width))


class Counts(Average):
    calls = itertools.count()

    def affine(self, view):
        return Affine(super().affine(view).weights, np.full(view.width, float(next(self.calls))))


class Remembers(Average):
    seen = 0

    def affine(self, view):
        self.seen += 1
        return Affine(super().affine(view).weights, np.full(view.width, float(self.seen)))


class RefusesNowAndThen(Average):
    seen = 0

    def affine(self, view):
        self.seen += 1
        if self.seen > 4:
            raise NotApplicable("no more")
        return super().affine(view)


@pytest.mark.parametrize("cls", [Random, Counts, Remembers, RefusesNowAndThen])
def test_an_attack_that_is_not_deterministic_is_caught(cls):
    caught(check_attack, cls, "deterministic", "copies [1, 2, 3]")


class DividesByTheOthers(First):
    def estimate(self, copies):
        return copies[0] - copies[0].mean(axis=0)


def test_an_attack_whose_estimates_hang_on_how_rows_are_cut_is_caught():
    caught(check_attack, DividesByTheOthers, "record by record")


class InvertsTheCovariance(Average):
    def affine(self, view):
        np.linalg.inv(view.data_moments[1])
        return super().affine(view)


class NeedsTwoCopies(Average):
    def affine(self, view):
        return Affine(super().affine(view).weights, np.zeros(view.width) + view.copies[1])


class NeedsThreeAttributes(Average):
    def affine(self, view):
        return Affine(super().affine(view).weights, np.eye(view.width)[2])


class SaysNoReason(Average):
    def affine(self, view):
        raise NotApplicable("")


class Exits(Average):
    def affine(self, view):
        raise SystemExit(0)


class RefusesByAKey(Average):
    def check(self, family, knowledge):
        raise KeyError(family)


class FailsOnRecordsAlone(First):
    def estimate(self, copies):
        return copies[0] + 0.0 * copies[0][1]


@pytest.mark.parametrize(
    ("cls", "words"),
    [
        (Exits, ("SystemExit",)),
        (RefusesByAKey, ("KeyError", "additive")),
        (FailsOnRecordsAlone, ("IndexError",)),
        (InvertsTheCovariance, ("LinAlgError", "Singular matrix")),
        (NeedsTwoCopies, ("IndexError", "copies [1]")),
        (NeedsThreeAttributes, ("IndexError", "on one attribute by")),
        (SaysNoReason, ("a reason",)),
    ],
)
def test_an_attack_that_refuses_by_anything_but_not_applicable_is_caught(cls, words):
    caught(check_attack, cls, "answers or refuses", *words)


class NotANumber(Average):
    def affine(self, view):
        return Affine(super().affine(view).weights * np.nan, np.zeros(view.width))


class WrongShape(Average):
    def affine(self, view):
        return Affine(np.eye(view.width + 1), np.zeros(view.width))


class RowTooFew(First):
    def estimate(self, copies):
        return copies[0][1:].copy()


class NoProbabilities(CategoricalAttack):
    """Says that every value has probability 1."""

    name = "no-probabilities"
    assumes, wins = Average.assumes, Average.wins

    def infer(self, view):
        inference = Inference()
        inference.prior = np.full(view.size, 1.0 / view.size)
        inference.posterior = lambda copies: np.ones((copies[0].size, view.size))
        return inference


@pytest.mark.parametrize("cls", [NotANumber, WrongShape, RowTooFew, NoProbabilities])
def test_estimates_that_are_no_finite_numbers_of_the_right_shape_are_caught(cls):
    caught(check_attack, cls, "finite and of the right shape")


class RefusesEverything(Average):
    def affine(self, view):
        raise NotApplicable("not today")


class OfNoFamily(Average):
    families = frozenset({"no-such-family"})


@pytest.mark.parametrize("cls", [RefusesEverything, OfNoFamily])
def test_an_attack_that_answers_nowhere_is_caught(cls):
    caught(check_attack, cls, "answers somewhere")


class TakesAnyKnowledge(Average):
    knowledge = ("perfect",)

    def check(self, family, knowledge):
        return


class MisspeltKnowledge(Average):
    knowledge = ("perfekt",)


@pytest.mark.parametrize("cls", [TakesAnyKnowledge, MisspeltKnowledge])
def test_knowledge_that_is_declared_and_not_refused_is_caught(cls):
    caught(check_attack, cls, "refuses unusable knowledge")


class Terse(Average):
    """Short."""


class Undescribed(Average):
    class Parameters(PluginParameters):
        """One."""

        share: float = 0.5


class TakesAnything(Average):
    class Parameters(PluginParameters):
        """Any."""

        model_config = ConfigDict(extra="ignore")


class SaysNothingOfWins(Average):
    wins = ""


@pytest.mark.parametrize(
    ("cls", "name"),
    [
        (Terse, "documented"),
        (Undescribed, "parameters described"),
        (TakesAnything, "unknown parameters refused"),
        (SaysNothingOfWins, "says when it wins"),
    ],
)
def test_a_plugin_that_does_not_say_what_it_is_is_caught(cls, name):
    caught(check_attack, cls, name)


# -- schemes


class Fresh(AdditiveScheme):
    """Fresh noise in every copy, as stated."""

    name = "fresh"
    claims = "Nothing under collusion."
    factor = 1.0

    def level_covariance(self, levels):
        return np.diag(np.asarray(levels, dtype=float))

    def plan(self, levels, existing=0):
        return [
            Step(k, ((0, 1.0),), ((k, float(np.sqrt(level * self.factor))),))
            for k, level in enumerate(levels, 1)
            if k > existing
        ]


class Drawn:
    """Draws normals of the stated law by itself; a broken scheme overrides one thing."""

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
    sampler_class = Drawn

    def sampler(self, levels, table, key, existing=0):
        return self.sampler_class(levels, self.law(levels, table), key, existing)


@pytest.mark.parametrize("cls", [Fresh, ByHand])
def test_an_honest_scheme_passes(cls):
    check_scheme(cls)


def broken(**methods):
    return type(
        "Broken",
        (ByHand,),
        {
            "__doc__": ByHand.__doc__ or Fresh.__doc__,
            "sampler_class": type("Sampler", (Drawn,), methods),
        },
    )


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


@pytest.mark.parametrize(
    ("methods", "words"),
    [
        ({"block": one_normal_for_all_columns}, ("length",)),
        ({"block": one_noise_for_all_copies}, ("of copies",)),
        ({"block": noise_that_hangs_on_the_data}, ()),
        ({"normals": lambda self, rng, shape: 0.9 * rng.standard_normal(shape)}, ("length",)),
        (
            {"normals": lambda self, rng, shape: np.sqrt(0.9) * rng.standard_normal(shape)},
            ("length",),
        ),
        ({"normals": lambda self, rng, shape: 0.96 * rng.standard_normal(shape)}, ()),
        (
            {"normals": lambda self, rng, shape: rng.standard_normal(shape) + 0.05},
            ("noise of copy",),
        ),
        ({"normals": lambda self, rng, shape: rng.uniform(-np.sqrt(3.0), np.sqrt(3.0), shape)}, ()),
        (
            {
                "normals": lambda self, rng, shape: (
                    np.sqrt(1.25) * rng.standard_normal(shape) * (rng.random((shape[0], 1)) < 0.8)
                )
            },
            (),
        ),
    ],
    ids=[
        "shared-normal",
        "shared-noise",
        "hangs-on-data",
        "std-10%-small",
        "variance-10%-small",
        "std-4%-small",
        "shifted",
        "uniform",
        "rows-without",
    ],
)
@pytest.mark.slow_after_first
def test_a_scheme_that_breaks_its_law_is_caught(methods, words):
    caught(check_scheme, broken(**methods), "follows its law", "by the stated law", *words)


def test_a_plan_that_breaks_the_law_is_caught_without_drawing():
    caught(
        check_scheme,
        type("Less", (Fresh,), {"__doc__": Fresh.__doc__, "factor": 0.9}),
        "plan draws from the law",
        "between copies 2 and 2",
    )


def test_an_extension_that_breaks_the_law_is_caught():
    def half_when_extended(self, rng, shape):
        return rng.standard_normal(shape) * (0.5 if self.existing else 1.0)

    caught(check_scheme, broken(normals=half_when_extended), "extension follows the law")


def test_an_extension_that_draws_the_first_copies_again_is_caught():
    def again(self, index, x, out, existing=0):
        self.existing = 0
        Drawn.block(self, index, x, out, existing)

    caught(check_scheme, broken(block=again), "extension leaves copies as they are")


def writes(self, index, x, out, existing=0):
    x += 1.0


def raises(self, index, x, out, existing=0):
    raise KeyError("spread")


@pytest.mark.parametrize(
    ("methods", "name"),
    [
        ({"block": writes}, "leaves what it is shown as it is"),
        ({"block": raises}, "draws"),
        ({"normals": lambda self, rng, shape: np.full(shape, np.nan)}, "finite"),
        ({"rng": lambda self, copy, index: np.random.default_rng()}, "same seed, same copies"),
        (
            {"rng": lambda self, copy, index: np.random.default_rng([copy, index])},
            "another seed, other copies",
        ),
        (
            {"rng": lambda self, copy, index: np.random.default_rng([self.key.seed, copy])},
            "own draws in every block",
        ),
    ],
)
def test_a_scheme_that_is_no_function_of_its_key_is_caught(methods, name):
    caught(check_scheme, broken(**methods), name)


def test_a_scheme_whose_blocks_hang_on_their_order_is_caught():
    def rng(self, copy, index):
        self.drawn = getattr(self, "drawn", 0) + 1
        return np.random.default_rng([self.key.seed, self.drawn, index])

    caught(check_scheme, broken(rng=rng), "blocks in any order")


def test_a_scheme_that_takes_impossible_levels_is_caught():
    lax = type(
        "Lax", (Fresh,), {"__doc__": Fresh.__doc__, "check_levels": lambda self, levels: None}
    )
    caught(check_scheme, lax, "refuses impossible levels", "nan")


class KeepsMore(Uniform):
    """Keeps more values than it says it does."""

    name = "keeps-more"

    def copies(self, original, size, key):
        return KeptMore(original, size, key)


class KeptMore(FreshCopies):
    def copy(self, number):
        values, rng = (
            super().copy(number),
            np.random.default_rng([self.key.seed, number, self.key.block]),
        )
        return np.where(rng.random(values.size) < 0.05, self.original, values)


def test_categories_that_break_their_law_are_caught():
    caught(check_scheme, KeepsMore, "follows its law", "of 100,000 records")


class PairsShare(Uniform):
    """Draws rows in pairs by one coin: each row alone follows the law."""

    name = "pairs-share"

    def copies(self, original, size, key):
        return PairedCoins(original, size, key)


class PairedCoins(FreshCopies):
    def _drawn(self, level, rng):
        n = self.original.size
        keep = np.repeat(rng.random(n // 2 + 1) < level, 2)[:n]
        return np.where(keep, self.original, rng.integers(0, self.size, n)).astype(
            self.original.dtype
        )


def test_categories_that_share_coins_are_caught():
    caught(
        check_scheme,
        PairsShare,
        "follows its law",
        "the coin of copy",
        "its own value 1 row earlier",
    )


# -- sources


class Normals(Source):
    """Two columns of normals, and nothing wrong."""

    name = "normals"
    description = "Drawn"

    def width(self):
        return 2

    def frame(self, rows, rng):
        return pd.DataFrame(rng.normal(size=(rows or 100, 2)), columns=["a", "b"])


def test_an_honest_source_passes():
    check_source(Normals)


@pytest.mark.parametrize(
    ("frame", "name"),
    [
        (lambda self, rows, rng: rng.normal(size=(rows, 2)), "a table"),
        (lambda self, rows, rng: pd.DataFrame({"a": [1.0]}), "a table"),
        (lambda self, rows, rng: 1 / 0, "a table"),
        (
            lambda self, rows, rng: pd.DataFrame(rng.normal(size=(rows, 2)), columns=["a", "a"]),
            "unique names",
        ),
        (
            lambda self, rows, rng: pd.DataFrame(rng.normal(size=(50, 2)), columns=["a", "b"]),
            "as many rows as asked",
        ),
        (
            lambda self, rows, rng: pd.DataFrame(
                rng.normal(size=(rows, 3)), columns=["a", "b", "c"]
            ),
            "as many rows as asked",
        ),
        (
            lambda self, rows, rng: pd.DataFrame(np.full((rows, 2), np.inf), columns=["a", "b"]),
            "finite",
        ),
        (
            lambda self, rows, rng: pd.DataFrame(
                np.random.default_rng().normal(size=(rows, 2)), columns=["a", "b"]
            ),
            "same seed, same table",
        ),
    ],
)
def test_a_source_that_breaks_its_contract_is_caught(frame, name):
    caught(
        check_source, type("Broken", (Normals,), {"__doc__": Normals.__doc__, "frame": frame}), name
    )


@pytest.mark.parametrize("domain", [{"c": ["x"]}, {"a": [0.0]}])
def test_domains_that_are_not_its_columns_are_caught(domain):
    broken = type(
        "Broken", (Normals,), {"__doc__": Normals.__doc__, "domains": lambda self: domain}
    )
    caught(check_source, broken, "labels and domains")


@pytest.mark.parametrize(
    ("law", "draw", "name"),
    [
        (7, None, "a law"),
        (RecordLaw({"a": NORMAL}), None, "a law"),
        (RecordLaw(), lambda n, rng: rng.exponential(size=(n, 2)), "follows its law"),
        (
            RecordLaw(),
            lambda n, rng: (
                rng.normal(size=(n, 1)) * np.column_stack([np.ones(n), rng.choice([-1, 1], n)])
            ),
            "follows its law",
        ),
        (
            RecordLaw({"a": NORMAL, "b": NORMAL}),
            lambda n, rng: rng.normal(size=(n, 2)) @ [[1.0, 0.2], [0.0, 1.0]],
            "follows its law",
        ),
        (RecordLaw(), lambda n, rng: np.sort(rng.normal(size=(n, 2)), axis=0), "follows its law"),
    ],
)
def test_a_source_that_does_not_draw_from_the_law_it_states_is_caught(law, draw, name):
    methods = (
        {}
        if draw is None
        else {
            "frame": lambda self, rows, rng: pd.DataFrame(
                draw(rows or 100, rng), columns=["a", "b"]
            )
        }
    )
    caught(
        check_source,
        type(
            "Broken", (Normals,), {"__doc__": Normals.__doc__, "law": lambda self: law, **methods}
        ),
        name,
    )


@pytest.mark.parametrize("law", [RecordLaw(), RecordLaw({"a": NORMAL, "b": NORMAL})])
def test_a_source_that_states_its_law_passes(law):
    check_source(type("Stated", (Normals,), {"__doc__": Normals.__doc__, "law": lambda self: law}))
