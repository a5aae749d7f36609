"""Noise that breaks its stated law, and honest releases of all laws.

A fault changes the copies of an honest release: ``change(x, copies, law, rng)`` returns other
copies."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from auditor import registry
from auditor.audit.law_tests.numeric import law_tests
from auditor.audit.numeric.release import Release
from auditor.base.types import Array
from auditor.cli.trials import CaseTable
from auditor.runs.perturb import as_table
from auditor.schemes import divisible_noise as laplace_noise
from auditor.schemes.base.noise_law import NoiseLaw, psd_root
from auditor.schemes.base.scheme import Key, table_moments
from tests import planted_cases

Change = Callable[[Array, Sequence[Array], NoiseLaw, np.random.Generator], Sequence[Array]]


def increment(rng, low, high, shape):
    """Return Laplace increments of all columns, shape (rows, N)."""
    variances = zip(low.tolist(), high.tolist(), strict=True)
    return np.column_stack(
        [laplace_noise.laplace_increment(rng, a, b, shape[0]) for a, b in variances]
    )


def table(kind, rows, seed=14):
    """Return a table of one kind."""
    rng = np.random.default_rng(seed)
    base = rng.normal(size=(rows, 3)) @ np.array(
        [[1.0, 0.5, -0.3], [0.0, 0.8, 0.4], [0.0, 0.0, 0.6]]
    )
    skewed = np.exp(base)
    kinds = {
        "skewed": lambda: skewed, "one": lambda: skewed[:, :1], "heavy": lambda: rng.standard_t(2.1, (rows, 3)), "far": lambda: base + 1e7,
        "sorted": lambda: skewed[skewed[:, 0].argsort()], "rounded": lambda: np.round(skewed, 1), "whole": lambda: np.rint(10.0 * skewed),
        "counts": lambda: rng.poisson(3.0, (rows, 2)).astype(float), "totals": lambda: np.column_stack([base, base.sum(axis=1)]),
        "wide": lambda: rng.normal(size=(rows, 24)) @ np.tril(np.ones((24, 24)), 0) / 5.0,
        "constant": lambda: np.column_stack([skewed[:, :2], 7.0 + (np.arange(rows) == 1)]),
        "duplicate": lambda: skewed[:, [0, 1, 0]], "heaped": lambda: np.where(rng.random((rows, 2)) < 0.5, 0.0, skewed[:, :2]),
        "series": lambda: np.cumsum(base, axis=0), "case": lambda: CaseTable(records="lognormal").frame(rows, rng).to_numpy(),
    }  # fmt: skip
    return kinds[kind]()


@dataclass
class Drawn:
    """A drawn release, for the tests of an audit."""

    release: Release
    law: NoiseLaw
    copies: Sequence[Array] = field(repr=False)


def drawn(X, scheme, levels, seed):
    """Return the honest release of a table by a scheme."""
    data = as_table(X)
    moments, key = table_moments(data), Key(seed, scheme.name)
    release = Release(data, moments, scheme, SimpleNamespace(already_out=0), tuple(levels), key)
    copies = release.whole_copies()
    return Drawn(
        release,
        scheme.law(levels, moments) if release.transformed is None else release.transformed.law,
        copies,
    )


def law_tests_of(drawn, change=None, seed=0):
    """Return the tests of a release with changed copies."""
    release, law, copies = drawn.release, drawn.law, drawn.copies
    if change is not None:
        copies = change(release.table.values, copies, law, np.random.default_rng(seed))
    release.hold(copies)
    return law_tests(release, law)


def scores(x, rng):
    """Return normal scores of each column, ties broken at random."""
    return ndtri((x.argsort(axis=0).argsort(axis=0) + rng.random(x.shape)) / len(x))


def planted(case):
    """A leak of the self-test's catalogue in noise that is drawn already."""
    return lambda x, copies, law, rng: case().release(
        x, case().noise(x, [copy - x for copy in copies], rng)
    )


def of_noise(function, only=None):
    """Change the noise of each copy, or of one: ``function(z, x, rng)``."""

    def change(x, copies, law, rng):
        chosen = range(len(copies)) if only is None else (only % len(copies),)
        return [
            x + function(copy - x, x, rng) if k in chosen else copy for k, copy in enumerate(copies)
        ]

    return change


def mixed(share, other):
    """Noise that holds a share of something else of its own size."""
    return lambda z, x, rng: (
        math.sqrt(1.0 - share**2) * z + share * z.std(axis=0) * other(z / z.std(axis=0), x, rng)
    )


def as_innovations(draw):
    """Noise of the right covariance from other draws."""

    def change(x, copies, law, rng):
        z = (draw(rng, (len(x), law.copies * law.width)) @ law.root.T).reshape(
            len(x), law.copies, law.width
        )
        return [x + z[:, k] for k in range(law.copies)]

    return change


def bare(chosen, only=None, column=None):
    """Rows, or cells of one column, without noise."""

    def function(z, x, rng):
        out = chosen(x, rng)[:, None] & (
            True if column is None else np.arange(x.shape[1]) == column
        )
        return np.where(out, 0.0, z)

    return of_noise(function, only)


def second_from_first(function):
    """Change the second copy's noise: ``function(z_1 scaled, z_2, x, rng)``."""

    def change(x, copies, law, rng):
        first, second = copies[0] - x, copies[1] - x
        scaled = first * (second.std(axis=0) / first.std(axis=0))
        return [copies[0], x + function(scaled, second, x, rng), *copies[2:]]

    return change


def code(function, share=0.5):
    """Change innovations g in a share of the rows: ``function(x, g)``."""

    def change(x, copies, law, rng):
        levels, fair = np.diag(law.level_covariance), rng.standard_normal((3, *x.shape))
        g = fair.copy()
        function(x, g)
        g = np.where(rng.random((len(x), 1)) < share, g, fair)
        z = (
            np.cumsum(np.sqrt(np.diff(levels, prepend=0.0))[:, None, None] * g, axis=0)
            @ psd_root(law.shape).T
        )
        return [x + each for each in z]

    return change


def written(values, frequency, held):
    """Return values with a share in the digits after parts of 1/frequency."""
    return (np.floor(values * frequency) + held) / frequency


def noise_in(frequency):
    def function(x, g):
        g[1] = written(g[1], frequency, ndtr(g[0]))

    return function


def record_in(frequency):
    def function(x, g):
        g[1] = written(g[1], frequency, 1.0 - planted_cases.ranks(x))

    return function


def in_a_sum(x, g):
    total = g[1].sum(axis=1)
    g[1][:, 0] += written(total, 1000.0, ndtr(g[0][:, 0])) - total


def of_the_other_attribute(x, g):
    g[2] = written(g[2], 1000.0, ndtr(g[0][:, ::-1]))


def in_the_digits_of_a_copy(x, copies, law, rng):
    z = copies[0] - x
    return [copies[0], written(copies[1], 100.0, ndtr(z / z.std(axis=0))), *copies[2:]]


def far_by_turns(z, x, rng):
    """A deterministic function of the rank that wraps a thousand times."""
    return z.std(axis=0) * ndtri(
        (1000.0 * (x.argsort(axis=0).argsort(axis=0) + rng.random(x.shape)) / len(x)) % 1.0
    )


def by_number(z, x, rng):
    """An equidistributed sequence with uncorrelated neighbours."""
    alpha = 0.5 - math.sqrt(1.0 / 12.0)
    return z.std(axis=0) * ndtri(
        np.clip((alpha * np.arange(len(x))[:, None] + rng.random(x.shape[1])) % 1.0, 1e-9, 1 - 1e-9)
    )


def louder_before(z, x, rng):
    """Large where the next record lies far out."""
    return (
        np.where(np.roll(np.abs(scores(x, rng)), -1, axis=0) > 0.6745, 1.2, math.sqrt(2.0 - 1.2**2))
        * z
    )


def parity(z, x, rng):
    """The sign follows the parity of the value's rank."""
    return np.abs(z) * np.where(x.argsort(axis=0).argsort(axis=0) % 2 == 0, 1.0, -1.0)


def antithetic(z, x, rng):
    half = len(z) // 2
    return np.concatenate([z[:half], -z[:half], z[2 * half :]])


def blocks_of_625(z, x, rng):
    return rng.normal(size=(len(x) // 625 + 1, x.shape[1])).repeat(625, axis=0)[: len(x)]


def side_by_product(first, z, x, rng):
    return np.abs(z) * np.sign(first) * np.where(x > np.median(x, axis=0), 1.0, -1.0)


def one_in(share):
    return lambda x, rng: rng.random(len(x)) < share


def quiet(factor):
    """The first column has less noise."""
    return lambda z, x, rng: z * np.where(np.arange(x.shape[1]) == 0, factor, 1.0)


def rounded_leak(x, copies, law, rng):
    return [
        np.round(copy, 3) for copy in planted(planted_cases.UnperturbedRows)(x, copies, law, rng)
    ]


def stepped(step):
    """Make the second Laplace copy from the first plus ``step(rng, x, v, z)``."""

    def change(x, copies, law, rng):
        return [copies[0], copies[0] + step(rng, x, np.diag(law.shape), copies[0] - x)]

    return change


def at_rest(rng, share, v, shape, each=True):
    rest = rng.random(shape if each else (shape[0], 1)) < share
    return np.where(rest, 0.0, increment(rng, 0 * v, 0.5 / (1.0 - share) * v, shape))


def as_large(rng, x, v, z):
    """Lawful increments; in every fifth row ranked as the first noise."""
    lawful = increment(rng, 0.5 * v, v, x.shape)
    ranked = np.empty_like(lawful)
    np.put_along_axis(
        ranked, np.abs(z).argsort(axis=0),
        np.take_along_axis(lawful, np.abs(lawful).argsort(axis=0), 0), axis=0,
    )  # fmt: skip
    return np.where(rng.random(x.shape) < 0.2, ranked, lawful)


@dataclass
class Fault:
    """A change of an honest release."""

    change: Change | None
    scheme: str = "correlated"
    levels: Sequence[float] = (0.25, 0.5, 1.0)
    kind: str = "skewed"
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def tests(self, rows, seed):
        """Return the tests of one release."""
        scheme = (
            CASES[self.scheme] if self.change is None else registry.get("scheme", self.scheme)
        )(**self.parameters)
        X = (
            table(self.kind, rows, 14 + seed)
            if self.change is not None
            else case_table(self.scheme, rows, seed)
        )
        return law_tests_of(drawn(X, scheme, self.levels, seed), self.change, seed)


def case_table(case, rows, seed):
    frame = CaseTable(records=CASES[case].records).frame(rows, np.random.default_rng(seed))
    return frame.to_numpy(float)


def _faults():
    nested = partial(Fault, scheme="corner-wave", levels=(0.25, 0.5), kind="one")
    single = partial(Fault, scheme="independent", levels=(0.5, 1.0), kind="one")
    laplace = partial(Fault, scheme="laplace-multilevel", levels=(0.5, 1.0))
    coded = partial(Fault, scheme="corner-wave", levels=(0.3, 0.6, 0.9), kind="case")
    shared = {
        "unperturbed rows": planted(planted_cases.UnperturbedRows), "a period": planted(planted_cases.PeriodicGenerator),
        "shared rows": planted(planted_cases.shared_rows), "sizes together": planted(planted_cases.sizes_together),
        "bounded": as_innovations(lambda rng, shape: rng.uniform(-math.sqrt(3), math.sqrt(3), shape)),
        "shared in a twentieth": planted(planted_cases.shared_in_a_twentieth),
    }  # fmt: skip
    again = second_from_first(lambda first, z, x, rng: np.roll(first, -1000, axis=0))
    backwards = second_from_first(lambda first, z, x, rng: -first[::-1])
    every = {name: Fault(change) for name, change in shared.items()}
    every |= {f"{name}, nested copies": nested(change) for name, change in shared.items()}
    every |= {
        "the next record": Fault(of_noise(mixed(0.1, lambda g, x, rng: np.roll(scores(x, rng), -1, axis=0)), 0)),
        "a record far before": Fault(of_noise(mixed(0.1, lambda g, x, rng: np.roll(scores(x, rng), 4321, axis=0)), 0)),
        "louder before a record far out": Fault(of_noise(louder_before, 0)),
        "one normal for all columns": Fault(planted(planted_cases.one_normal_for_all_columns)),
        "a mean of 6 %": Fault(of_noise(lambda z, x, rng: z + 0.06 * z.std(axis=0))),
        "three unperturbed rows": Fault(bare(lambda x, rng: np.isin(np.arange(len(x)), (7, 500, 999)))),
        "one unperturbed row": Fault(bare(lambda x, rng: np.arange(len(x)) == 7)),
        "the last rows": Fault(bare(lambda x, rng: np.arange(len(x)) >= len(x) // 64 * 64 - 8)),
        "one cell in a hundred": Fault(bare(one_in(0.01), -1, 0)),
        "antithetic rows": Fault(of_noise(antithetic)),
        "heavy tails": Fault(as_innovations(lambda rng, shape: rng.standard_t(5, shape) / math.sqrt(5 / 3))),
        "grows with the record": Fault(planted(planted_cases.grows_with_the_record)), "follows the data": Fault(planted(planted_cases.follows_the_data)),
        "one copy twice in a row of a hundred": Fault(
            lambda x, copies, law, rng: [copies[0], np.where(rng.random((len(x), 1)) < 0.01, copies[0], copies[1]), *copies[2:]]),
        "7 % of the row before": Fault(of_noise(mixed(0.07, lambda g, x, rng: np.roll(g, 1, axis=0)))),
        "9 % of the noise 37 rows earlier": Fault(of_noise(mixed(0.09, lambda g, x, rng: np.roll(g, 37, axis=0)))),
        "10 % of another copy's row before": Fault(
            second_from_first(lambda first, z, x, rng: math.sqrt(0.99) * z + 0.1 * np.roll(first, 1, axis=0))),
        "10 % shared by 625 rows": Fault(of_noise(mixed(0.1, lambda g, x, rng: blocks_of_625(g, x, rng)))),
        "20 % less noise in a column": Fault(planted(planted_cases.quiet_column)),
        "5 % less noise in a column of one copy": Fault(of_noise(quiet(0.95), 1)),
        "10 % less noise in a column of one copy": Fault(of_noise(quiet(0.9), 1)),
        "5 % less noise, correlated levels": Fault(of_noise(quiet(0.95), 1), "corner-wave"),
        "shuffled rows": Fault(planted(planted_cases.shuffled_rows)),
        "a function of the record": single(of_noise(far_by_turns, 0)), "a function of the row's number": single(of_noise(by_number, 0)),
        "parity of the rank": single(of_noise(parity, 0)),
        "side by the sign of a product": single(second_from_first(side_by_product)),
        "the next record whole": single(of_noise(mixed(1.0, lambda g, x, rng: np.roll(scores(x, rng), -1, axis=0)), 0)),
        "the record 250 rows on whole": single(of_noise(mixed(1.0, lambda g, x, rng: np.roll(scores(x, rng), -250, axis=0)), 0)),
        "another copy's rows": Fault(again), "another copy's rows backwards": Fault(backwards),
        "another copy's rows, independent": Fault(again, "independent"),
        "another copy's rows backwards, independent": Fault(backwards, "independent"),
        "noise at level 0": Fault(lambda x, copies, law, rng: [copies[0] + 1e-6, copies[1]], "corner-wave", (0.0, 0.5)),
        "a copy that is the original": Fault(lambda x, copies, law, rng: [x.copy(), copies[1]], "corner-wave", (0.25, 0.5)),
        "a second draw": Fault(lambda x, copies, law, rng: [copies[0], copies[1] + 0.01 * copies[1].std(axis=0) * rng.normal(size=x.shape)],
                               "linearly-dependent", (0.25, 0.5)),
        "unperturbed rows on a grid": Fault(rounded_leak, kind="counts"),
        "uniform: one normal size for both copies": Fault(
            second_from_first(lambda first, z, x, rng: np.abs(first) * np.sign(z)), "independent", (0.5, 1.0), parameters={"distribution": "uniform"}),
        "independent increments declared one process": laplace(stepped(lambda rng, x, v, z: increment(rng, 0 * v, v, x.shape) - z)),
        "an increment never at rest": laplace(stepped(lambda rng, x, v, z: increment(rng, 0 * v, 0.5 * v, x.shape))),
        "one more cell in ten at rest": laplace(stepped(lambda rng, x, v, z: at_rest(rng, 0.55, v, x.shape))),
        "at rest in all attributes at once": laplace(stepped(lambda rng, x, v, z: at_rest(rng, 0.5, v, x.shape, False))),
        "at rest above the median": laplace(
            stepped(lambda rng, x, v, z: np.where(x > np.median(x, axis=0), 0.0, increment(rng, 0 * v, v, x.shape)))),
        "as large as the noise before": laplace(stepped(as_large)),
        "a record without Laplace noise": laplace(bare(lambda x, rng: np.arange(len(x)) == 7, 0)),
        "one process declared independent": Fault(stepped(lambda rng, x, v, z: increment(rng, 0.5 * v, v, x.shape)), "laplace", (0.5, 1.0)),
    }  # fmt: skip
    for scheme in ("geometric-multilevel", "skellam-multilevel"):
        whole = partial(Fault, scheme=scheme, levels=(0.5, 1.0), kind="whole")
        every |= {
            f"{scheme}: a period": whole(of_noise(lambda z, x, rng: np.resize(z[: len(z) // 6], z.shape))),
            f"{scheme}: off the lattice": whole(
                lambda x, copies, law, rng: [copy + 0.5 * (np.arange(len(x)) % 100 == 0)[:, None] for copy in copies]),
            f"{scheme}: unperturbed rows": whole(bare(one_in(0.1))),
        }  # fmt: skip
    codes = {
        "2nd decimal": noise_in(100.0), "3rd decimal": noise_in(1000.0), "6th decimal": noise_in(1e6), "sevenths": noise_in(7000.0),
        "thirds": noise_in(1000 / 3), "pi": noise_in(1000 * math.pi), "record, 3rd decimal": record_in(1000.0),
        "record, 6th decimal": record_in(1e6), "record, sevenths": record_in(700.0), "a sum": in_a_sum, "another attribute": of_the_other_attribute,
    }  # fmt: skip
    every |= {f"digits: {name}": coded(code(function)) for name, function in codes.items()}
    every["digits: 3rd decimal, a tenth of the rows"] = coded(code(noise_in(1000.0), 0.1))
    every["digits of a copy"] = coded(in_the_digits_of_a_copy)
    every |= {f"self-test: {case.name}": Fault(None, case.name, case.trial_levels)
              for case in CASES.values() if not case.honest and case.records != "categories"}  # fmt: skip
    return every


registry.discover()
CASES = {case.name: case for case in planted_cases.all_cases()}
FAULTS = _faults()


# -- honest releases
# -----------------------------------------------------------------------------------------------------

HONEST = [
    ("independent", [0.25, 1.0], {}), ("independent", [0.25, 0.5], {"distribution": "uniform"}),
    ("independent", [0.5, 0.5], {"distribution": "uniform", "noise": "data"}), ("correlated", [0.3, 0.3, 2.0], {}),
    ("linearly-dependent", [0.25, 1.0, 0.5], {}), ("corner-wave", [0.25, 1.0, 0.5], {}), ("corner-wave", [0.5], {}),
    ("corner-wave", [0.5, 0.5, 0.0, 1.0, 1.0001], {"algorithm": "sequential"}),
    ("corner-wave", [0.5, 0.7, 1.0], {"algorithm": "parallel", "noise": "white"}),
    ("corner-wave", [0.5, 0.7, 0.6], {"algorithm": "on-demand", "noise": {"variance": 25.0}}),
    ("corner-wave", [0.5, 0.5 + 1e-7, 0.5 + 1e-12], {}), ("corner-wave", [0.1 * k for k in range(1, 11)], {}), ("rotation", [0.0], {}),
    ("rotation-noise", [0.25, 0.5], {"noise": "corner-wave"}), ("multiplicative-noise", [0.05, 0.1], {}),
    ("laplace", [0.5, 1.0], {}), ("laplace-multilevel", [0.5, 0.25, 1.0, 0.5, 0.9999], {}),
    ("geometric", [0.5, 1.0], {}), ("geometric-multilevel", [0.5, 0.25, 1.0], {}),
    ("skellam", [0.5, 1.0], {}), ("skellam-multilevel", [0.5, 0.25, 1.0], {}),
]  # fmt: skip
KINDS = "skewed one heavy far sorted rounded whole counts totals wide constant duplicate heaped series".split()
GRIDS = {
    "none": lambda y: y, "2 decimals": lambda y: np.round(y, 2), "1 decimal": lambda y: np.round(y, 1),
    "single precision": lambda y: y.astype(np.float32).astype(np.float64), "parts of 3,000": lambda y: np.round(3000 * y) / 3000,
    "five digits": lambda y: np.round(y / (ten := 10.0 ** np.floor(np.log10(np.abs(y) + 1e-300))), 4) * ten,
}  # fmt: skip


def honest(scheme, levels, parameters, kind, rows, seed, grid="none"):
    """Return the tests of an honest release with copies on a grid."""
    plugin = registry.get("scheme", scheme)(**parameters)
    X = table(kind, rows, seed)
    if plugin.on_lattice or kind == "duplicate":
        X = np.rint(X) + (np.arange(len(X)) == 0)[:, None]  # a column that is constant is refused
    X = np.abs(X) + 1.0 if scheme == "multiplicative-noise" else X
    return law_tests_of(
        drawn(X, plugin, levels, seed),
        lambda x, copies, law, rng: [GRIDS[grid](copy) for copy in copies],
    )
