from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from auditor.adversary import attack
from auditor.data.source import Source
from auditor.expectations.base import Expectation, Judgement
from auditor.results.comparison import Renderer
from auditor.schemes.corner_wave import CornerWave
from auditor.schemes.replacement.base import FreshCopies
from auditor.schemes.uniform import Uniform


def honest(value):
    return value


@dataclass
class Manners:
    kind: str = ""
    made: Callable[[], Any] | None = None
    act: Callable[..., Any] | None = None
    spoil: Callable[[Any], Any] = honest


NOW = Manners()


def called(kind, *shown):
    if kind == NOW.kind and NOW.act is not None:
        NOW.act(*shown)


def returned(kind, value):
    return NOW.spoil(value) if kind == NOW.kind else value


class Odd:
    """Mixed into every plugin here."""

    kind_here = ""

    def __init__(self, *arguments, **options):
        if self.kind_here == NOW.kind and NOW.made is not None:
            NOW.made()
        super().__init__(*arguments, **options)


class Linear(Odd, attack.LinearAttack):
    """Averages the copies."""

    name = kind_here = "odd-linear"

    def affine(self, view):
        called(self.name, view.centre)
        return attack.Affine(
            returned(self.name, np.kron(view.weights, np.eye(view.width))), np.zeros(view.width)
        )


class Rowwise(Odd, attack.RowAttack):
    """The first copy as the estimate."""

    name = kind_here = "odd-rows"

    def fit(self, view, blocks):
        return FirstCopy()


class FirstCopy(attack.Reconstruction):
    def rows(self, copies):
        called("odd-rows", copies[0])
        return returned("odd-rows", copies[0].copy())


class Guess(attack.Inference):
    def __init__(self, size):
        self.prior = np.full(size, 1 / size)

    def posterior(self, copies):
        called("odd-categorical", copies[0])
        return returned("odd-categorical", np.tile(self.prior, (copies[0].size, 1)))


class Categorical(Odd, attack.CategoricalAttack):
    """A constant estimate."""

    name = kind_here = "odd-categorical"

    def infer(self, view):
        return Guess(view.size)


class Sampler:
    def __init__(self, drawn):
        self._drawn = drawn

    def block(self, index, x, out, existing=0):
        called("odd-additive", x)
        self._drawn.block(index, x, out, existing)
        out[0][...] = returned("odd-additive", out[0].copy())


class Additive(Odd, CornerWave):
    """Corner-wave noise."""

    name = kind_here = "odd-additive"

    def sampler(self, levels, table, key, existing=0):
        return Sampler(super().sampler(levels, table, key, existing))


class Copies(FreshCopies):
    def copy(self, number):
        called("odd-uniform", self.original)
        return returned("odd-uniform", super().copy(number))


class Replaced(Odd, Uniform):
    """Uniform perturbation."""

    name = kind_here = "odd-uniform"

    def copies(self, original, size, key):
        return Copies(original, size, key)


class Normal(Odd, Source):
    """Two columns of noise."""

    name = kind_here = "odd-source"

    def frame(self, rows, rng):
        called(self.name)
        return pd.DataFrame(
            returned(self.name, np.random.default_rng(1).normal(size=(200, 2))), columns=["a", "b"]
        )


class Holds(Odd, Expectation):
    """Holds."""

    name = kind_here = "odd-expectation"

    def judge(self, evidence):
        called(self.name, evidence.measurements)
        return returned(self.name, Judgement("holds", "it does", 0.5))


class Page(Odd, Renderer):
    """A page of a word."""

    name = kind_here = "html"

    def render(self, results):
        called(self.name, results[0].measurements)
        return returned(self.name, "page")


PLUGINS = (Linear, Rowwise, Categorical, Additive, Replaced, Normal, Holds, Page)
