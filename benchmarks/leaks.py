"""Leaking releases that mix shown columns, units, blanks and tails: kinds for tests and evidence."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import auditor

N = 1_000
Kind = Callable[..., "Leak"]
"""Returns a leaking release by a generator, or its honest partner with ``leaks=False``."""
EXPOSURE = {"unknown": {"at-least": 0.5}, "close": {"at-most": 0.1}}


class Leak(NamedTuple):
    """A table, its copies, and options of ``data`` and of the scheme."""

    table: pd.DataFrame
    copies: Sequence[pd.DataFrame]
    data: dict[str, Any] | None = None
    categories: bool = False


def people(rng: np.random.Generator, tail: float = 0.03) -> pd.DataFrame:
    """Return pay, a share of it in a long tail, and age."""
    pay = np.where(rng.random(N) < tail, 2e4 * (1 + rng.pareto(2, N)), rng.lognormal(8, 0.4, N))
    return pd.DataFrame({"pay": pay.round(2), "age": rng.uniform(18, 90, N).round(1)})


def noisy(rng: np.random.Generator, table: pd.DataFrame, level: float = 4.0) -> pd.DataFrame:
    """Return a copy with independent noise in pay and age."""
    copy = table.copy()
    for name in ("pay", "age"):
        copy[name] += rng.normal(size=len(copy)) * np.sqrt(level) * table[name].std()
    return copy


def coded(values: Any, name: str) -> pd.Series[Any]:
    """Return whole numbers as text codes."""
    return pd.Series(np.asarray(values)).map((name + "{}").format)


def audited(table: pd.DataFrame, copies: Sequence[pd.DataFrame]) -> Leak:
    """Return an audit of pay and age alone."""
    return Leak(table, copies, {"columns": ["pay", "age"]})


def grade(rng: np.random.Generator) -> Leak:
    """A grade in clear."""
    table = people(rng)
    table["grade"] = coded(pd.qcut(table["pay"], 15, labels=False), "E")
    return audited(table, [noisy(rng, table)])


def ranks(rng: np.random.Generator) -> Leak:
    """Ranks of pay in a further column."""
    table = people(rng)
    return Leak(table, [noisy(rng, table).assign(place=table["pay"].rank())])


def renamed(rng: np.random.Generator) -> Leak:
    """Pay in clear under another name and currency."""
    table = people(rng)
    copy = noisy(rng, table).drop(columns="pay").assign(lohn=(table["pay"] * 1.936).round(2))
    return Leak(table, [copy])


def bands(rng: np.random.Generator) -> Leak:
    """Age bands in a further column."""
    table = people(rng)
    return Leak(table, [noisy(rng, table).assign(group=coded(table["age"] // 5, "band "))])


def household(rng: np.random.Generator) -> Leak:
    """One income for each household, with its number shown."""
    table = people(rng)
    house = rng.permutation(np.arange(N) // 5)
    table["pay"] = rng.lognormal(8, 0.5, N)[house].round(2)
    table["hid"] = coded(house, "h")
    return audited(table, [noisy(rng, table, 2.0)])


def panel(rng: np.random.Generator) -> Leak:
    """Ten waves of one constant value for each person, who is the unit."""
    table = people(rng)
    person = np.arange(N) // 10
    table["pay"] = rng.normal(50, 9, N)[person].round(2)
    table["person"] = person
    copy = noisy(rng, table, 2.0).drop(columns="person")
    return Leak(table, [copy], {"columns": ["pay", "age"], "unit": "person"})


def tail(rng: np.random.Generator) -> Leak:
    """Replaced values in the tail, and little noise elsewhere."""
    table = people(rng)
    copy = noisy(rng, table)
    large = table["pay"] > table["pay"].quantile(0.95)
    near = table["pay"] * (1 + 0.01 * rng.normal(size=N))
    copy["pay"] = np.where(large, rng.permutation(table["pay"]), near)
    return Leak(table, [copy])


def kept(rng: np.random.Generator) -> Leak:
    """Values kept in a third of the records."""
    table = people(rng)
    copy = noisy(rng, table)
    same = rng.random(N) < 0.35
    copy.loc[same, "pay"] = table["pay"][same]
    return Leak(table, [copy])


def one_noise(rng: np.random.Generator) -> Leak:
    """The same noise in two copies, scaled."""
    table = people(rng)
    noise = noisy(rng, table) - table
    return Leak(table, [table + noise, table + 2 * noise])


def product(rng: np.random.Generator) -> Leak:
    """Two columns in clear with pay as their product."""
    table = people(rng)
    hours = rng.uniform(10, 45, N)
    return Leak(table, [noisy(rng, table).assign(hours=hours, rate=table["pay"] / hours)])


def parts(rng: np.random.Generator) -> Leak:
    """Two further columns with pay as their sum."""
    table = people(rng)
    part = rng.normal(size=N) * 4_000
    return Leak(table, [noisy(rng, table).assign(a=part, b=table["pay"] - part)])


def blanks(rng: np.random.Generator) -> Leak:
    """Blanks where values were sensitive, and the other values exact."""
    table = people(rng)
    copy = noisy(rng, table)
    copy["pay"] = table["pay"].where(rng.random(N) < 0.7)
    return Leak(table, [copy])


def branch(rng: np.random.Generator) -> Leak:
    """A category that a code in clear determines."""
    code = rng.integers(0, 15, N)
    table = pd.DataFrame({"region": coded(code // 3, "r"), "branch": coded(code, "b")})
    swapped = np.where(rng.random(N) < 0.3, table["region"], rng.permutation(table["region"]))
    return Leak(table, [table.assign(region=swapped)], {"categorical": ["region"]}, True)


def every_second(rng: np.random.Generator) -> Leak:
    """Categories kept in every second row."""
    table = pd.DataFrame({"answer": coded(rng.integers(0, 4, N), "a")})
    other = coded(rng.integers(0, 4, N), "a")
    copy = table.where(np.arange(N)[:, None] % 2 == 0, other.to_frame("answer"))
    return Leak(table, [copy], {"categorical": ["answer"]}, True)


def beside_categories(rng: np.random.Generator) -> Leak:
    """Pay in clear next to audited categories."""
    table = people(rng)[["pay"]].assign(region=coded(rng.integers(0, 8, N), "r"))
    swapped = np.where(rng.random(N) < 0.2, table["region"], rng.permutation(table["region"]))
    data = {"columns": ["pay"], "categorical": ["region"]}
    return Leak(table, [table.assign(region=swapped)], data, True)


def shares(rng: np.random.Generator) -> Leak:
    """Three copies of a category with the value as their sum."""
    x, (a, b) = rng.integers(0, 5, N), rng.integers(0, 5, (2, N))
    columns = (x, a, b, (x - a - b) % 5)
    table, *copies = (pd.DataFrame({"answer": coded(each, "a")}) for each in columns)
    return Leak(table, copies, {"categorical": ["answer"]}, True)


def showing(about: str, column: Callable[[pd.Series[float]], Any]) -> Kind:
    """Return the kind of leak that shows a function of pay; honest if of other records' pay."""

    def kind(rng: np.random.Generator, leaks: bool = True) -> Leak:
        table = people(rng, 0.0)
        pay = table["pay"] if leaks else pd.Series(rng.permutation(table["pay"]))
        return Leak(table, [noisy(rng, table).assign(shown=column(pay))])

    kind.__name__, kind.__doc__ = about.replace(" ", "_"), f"{about}."
    return kind


def places(pay: pd.Series[float]) -> pd.Series[int]:
    """Return ranks from 0."""
    return pay.rank(method="first").astype(int) - 1


MONTHS = (
    "January February March April May June July August September October November December".split()
)
WORDS = (
    "low fair good high".split(),
    "niedrig mäßig gut hoch".split(),
    "bas moyen bon élevé".split(),
)
DIGITS = "zero one two three four five six seven eight nine".split()
ROMAN = dict(
    zip(
        (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1),
        "M CM D CD C XC L XL X IX V IV I".split(),
        strict=True,
    )
)


def roman(value: int) -> str:
    """Return a Roman numeral."""
    size = next((size for size in ROMAN if size <= value), 0)
    return ROMAN[size] + roman(value - size) if size else ""


SWAPPED, LETTERS = str.maketrans(",.", ".,"), str.maketrans("0123456789", "QWERTYUIOP")
SHOWN = (
    showing("A text code with the rank of pay", lambda pay: coded(places(pay), "k-")),
    showing(
        "A reference with a year, pay and a check digit",
        lambda pay: [f"{2000 + int(p) % 7}-R-{p:.0f}-{int(p) % 9}" for p in pay],
    ),
    showing("Pay in base 16", lambda pay: [f"{int(100 * p):x}" for p in pay]),
    showing(
        "A code in base 36 of fixed length",
        lambda pay: [np.base_repr(int(p), 36).zfill(6) for p in pay],
    ),
    showing(
        "A date of hire that determines pay",
        lambda pay: (
            pd.Timestamp("1980-01-01") + pd.to_timedelta(12 * places(pay), "D")
        ).dt.strftime("%d.%m.%Y"),
    ),
    showing(
        "Pay with comma and thousands point",
        lambda pay: [f"{p:,.2f}".translate(SWAPPED) for p in pay],
    ),
    showing("Digits of pay as letters", lambda pay: [f"{p:.0f}".translate(LETTERS) for p in pay]),
    showing("Pay of the next row", lambda pay: np.roll(pay, -1)),
    showing("Pay of the row before", lambda pay: np.roll(pay, 1)),
    showing(
        "Pay in another currency with one of five noise values",
        lambda pay: 1.936 * pay + 900 * (np.arange(N) * 7 % 5 - 2),
    ),
    showing("Pay with reversed digits and zeros", lambda pay: [f"{p:07.0f}"[::-1] for p in pay]),
    showing(
        "Pay with its digits shuffled",
        lambda pay: ["".join(f"{p:06.0f}"[k] for k in (3, 0, 5, 2, 4, 1)) for p in pay],
    ),
    showing(
        "Digits of pay between other digits",
        lambda pay: [
            "".join(map("".join, zip(f"{p:06.0f}", f"{k**3:06}"[-6:], strict=True)))
            for k, p in enumerate(pay)
        ],
    ),
    showing("Pay in Roman numerals", lambda pay: [roman(int(p)) for p in pay]),
    showing(
        "Pay in words", lambda pay: [" ".join(DIGITS[int(d)] for d in f"{p:.0f}") for p in pay]
    ),
    showing("Bands of pay as text", lambda pay: [f"{k}-{k + 1}k" for k in pay.astype(int) // 1000]),
    showing("Months in the order of pay", lambda pay: [MONTHS[k] for k in 12 * places(pay) // N]),
    showing(
        "Words for bands of pay in three languages",
        lambda pay: [WORDS[k % 3][band] for k, band in enumerate(4 * places(pay) // N)],
    ),
    showing(
        "Pay and hours in one text",
        lambda pay: [f"{35 + k % 6} h, {p / 12:.2f} a month" for k, p in enumerate(pay)],
    ),
    showing("As many words as pay has hundreds", lambda pay: ["ja " * int(p // 100) for p in pay]),
    showing("A text as long as pay", lambda pay: ["x" * int(p // 100) for p in pay]),
    showing("Pay modulo 1,000", lambda pay: pay % 1_000),
    showing("Pay modulo 5,000", lambda pay: pay % 5_000),
    showing(
        "A date with a weekday in the order of pay",
        lambda pay: (
            pd.Timestamp("1990-01-01")
            + pd.to_timedelta(7 * (np.arange(N) ** 2 % 1_499) + 7 * places(pay) // N, "D")
        ).dt.strftime("%d %B %Y"),
    ),
    showing(
        "A number with the rank of pay as its remainder by 37",
        lambda pay: 37 * (np.arange(N) ** 2 % 9_973) + 37 * places(pay) // N,
    ),
)


def crossed_bands(rng: np.random.Generator, leaks: bool = True) -> Leak:
    """Coarse bands of pay with a narrow intersection."""
    table = people(rng, 0.0)
    pay = table["pay"] if leaks else pd.Series(rng.permutation(table["pay"]))
    bands = {f"b{k}": coded(places(pay) * k // N, "band ") for k in (3, 4, 5, 7)}
    return Leak(table, [noisy(rng, table).assign(**bands)])


def graded_noise(rng: np.random.Generator, leaks: bool = True) -> Leak:
    """Noise with a size that a shown column determines: little in half of the records."""
    table = people(rng, 0.0)
    quality = rng.integers(0, 4, N)
    size = np.where(quality < 2, 0.02, 2.0) if leaks else 2.0
    pay = table["pay"] + rng.normal(size=N) * size * table["pay"].std()
    return Leak(table, [noisy(rng, table).assign(pay=pay, quality=coded(quality, "q"))])


def sorted_copy(rng: np.random.Generator, leaks: bool = True) -> Leak:
    """A copy that is sorted by pay and joined by a key."""
    table = people(rng, 0.0).assign(id=rng.permutation(10 * N)[:N])
    copy = noisy(rng, table)
    order = table["pay"].argsort() if leaks else rng.permutation(N)
    return Leak(table, [copy.iloc[order]], {"columns": ["pay", "age"], "key": "id"})


def exact_top(rng: np.random.Generator, leaks: bool = True) -> Leak:
    """Exact values of the twentieth with the largest pay."""
    table = people(rng, 0.03 * leaks)
    copy = noisy(rng, table)
    top = table["pay"] > table["pay"].quantile(0.95)
    copy["pay"] = table["pay"].where(top & leaks, copy["pay"])
    return Leak(table, [copy])


def next_category(rng: np.random.Generator, leaks: bool = True) -> Leak:
    """A category of the next row in a further column."""
    answer = coded(rng.integers(0, 4, N), "a")
    swapped = np.where(rng.random(N) < 0.2, answer, rng.permutation(answer))
    source = np.roll(answer, -1) if leaks else rng.permutation(answer)
    copy = pd.DataFrame({"answer": swapped, "other": source})
    return Leak(answer.to_frame("answer"), [copy], {"categorical": ["answer"]}, True)


def split_category(rng: np.random.Generator, leaks: bool = True) -> Leak:
    """Two further codes that sum to the category, modulo the number of values."""
    answer, part = rng.integers(0, 4, (2, N))
    table = pd.DataFrame({"answer": coded(answer, "a")})
    swapped = np.where(rng.random(N) < 0.2, table["answer"], rng.permutation(table["answer"]))
    rest = (answer - part) % 4 if leaks else rng.integers(0, 4, N)
    copy = table.assign(answer=swapped, one=coded(part, "p"), two=coded(rest, "q"))
    return Leak(table, [copy], {"categorical": ["answer"]}, True)


def within_household(rng: np.random.Generator, leaks: bool = True) -> Leak:
    """Categories swapped only within households of mostly equal members."""
    house = np.arange(N) // 4
    of_house = rng.integers(0, 4, N)[house]
    answer = np.where(rng.random(N) < 0.9, of_house, rng.integers(0, 4, N))
    mixed = (
        rng.permuted(answer.reshape(-1, 4), axis=1).ravel() if leaks else rng.permutation(answer)
    )
    table = pd.DataFrame(
        {"answer": coded(answer, "a"), "hid": coded(rng.permutation(N)[house], "h")}
    )
    copy = table.assign(answer=coded(mixed, "a"))
    return Leak(table, [copy], {"categorical": ["answer"]}, True)


def own(rng: np.random.Generator, leaks: bool, values: Any) -> pd.Series[Any]:
    """Return the records' values, or honestly other records'."""
    return pd.Series(np.asarray(values) if leaks else rng.permutation(values))


def swapped(rng: np.random.Generator, values: pd.Series[Any], kept: float = 0.2) -> Any:
    """Return categories, of which few are kept."""
    return np.where(rng.random(N) < kept, values, rng.permutation(values))


def ratio_of(rng: np.random.Generator, leaks: bool = True) -> Leak:
    """Two shown columns with pay as their ratio."""
    table = people(rng, 0.0)
    c = rng.uniform(0.5, 4, N)
    return Leak(table, [noisy(rng, table).assign(a=own(rng, leaks, table["pay"]) * c, c=c)])


def subgroup(rng: np.random.Generator, leaks: bool = True) -> Leak:
    """Pay in a further column for two fifths of the records, marked by a flag."""
    table = people(rng, 0.0)
    some = rng.random(N) < 0.4
    other = pd.Series(rng.permutation(table["pay"]))
    return Leak(
        table,
        [
            noisy(rng, table).assign(
                flag=coded(some * 1, "g"), x=np.where(some & leaks, table["pay"], other)
            )
        ],
    )


def subgroup_text(rng: np.random.Generator, leaks: bool = True) -> Leak:
    """Pay within remarks of two fifths of the records."""
    table = people(rng, 0.0)
    some = rng.random(N) < 0.4
    p = own(rng, leaks, table["pay"])
    return Leak(
        table,
        [
            noisy(rng, table).assign(
                x=[
                    f"earns {v:.0f}" if s else f"see file {int(k)}"
                    for v, s, k in zip(p, some, rng.integers(100, 9999, N), strict=True)
                ]
            )
        ],
    )


def numbered(rng: np.random.Generator, leaks: bool = True) -> Leak:
    """Pay in other rows, of which each shows the number."""
    table, row = people(rng, 0.0), rng.permutation(N)
    pay = table["pay"].to_numpy()[row if leaks else rng.permutation(N)]
    return Leak(table, [noisy(rng, table).assign(pay=pay, row=row)])


def weekday_category(rng: np.random.Generator, leaks: bool = True) -> Leak:
    """A category that is the weekday of a date in clear."""
    x, week = rng.integers(0, 7, N), rng.integers(0, 1_500, N)
    day = pd.Timestamp("1990-01-01") + pd.to_timedelta(7 * week + own(rng, leaks, x), "D")
    table = pd.DataFrame({"region": coded(x, "r")})
    copy = table.assign(region=swapped(rng, table["region"]), seen=day.dt.strftime("%d.%m.%Y"))
    return Leak(table, [copy], {"categorical": ["region"]}, True)


def weight(rng: np.random.Generator, leaks: bool = True) -> Leak:
    """Survey weights in inverse proportion to pay."""
    table = people(rng, 0.0)
    return Leak(
        table, [noisy(rng, table).assign(weight=(1e6 / own(rng, leaks, table["pay"])).round(2))]
    )


def two_dates(rng: np.random.Generator, leaks: bool = True) -> Leak:
    """Two dates with pay as their distance."""
    table = people(rng, 0.0)
    start = pd.Timestamp("1990-01-01") + pd.to_timedelta(rng.integers(0, 9000, N), "D")
    end = start + pd.to_timedelta(own(rng, leaks, table["pay"]).astype(int).to_numpy(), "D")
    dates = {name: day.strftime("%d.%m.%Y") for name, day in (("start", start), ("end", end))}
    return Leak(table, [noisy(rng, table).assign(**dates)])


def address(rng: np.random.Generator, leaks: bool = True) -> Leak:
    """One income for each household, with two codes that identify it."""
    table = people(rng, 0.0)
    house = rng.permutation(np.arange(N) // 10)
    income = rng.lognormal(8, 0.4, N)[house]
    table["pay"] = (income if leaks else rng.lognormal(8, 0.4, N)).round(2)
    return Leak(
        table,
        [noisy(rng, table).assign(street=coded(house % 10, "s"), number=coded(house // 10, "n"))],
        {"columns": ["pay", "age"]},
    )


def site(rng: np.random.Generator, leaks: bool = True) -> Leak:
    """A random code for every five records with nearly equal pay."""
    table = people(rng, 0.0)
    codes = coded(rng.permutation(N)[places(own(rng, leaks, table["pay"])) // 5], "S")
    return Leak(table, [noisy(rng, table, 2.0).assign(site=codes)])


def hashed(rng: np.random.Generator, leaks: bool = True) -> Leak:
    """A hash of pay."""
    table = people(rng, 0.0)
    values = own(rng, leaks, table["pay"])
    hashes = [hashlib.md5(f"{value:.0f}".encode()).hexdigest()[:8] for value in values]
    return Leak(table, [noisy(rng, table).assign(ref=hashes)])


def within_region(rng: np.random.Generator, leaks: bool = True) -> Leak:
    """Rows in the order of pay within each region."""
    table = people(rng, 0.0)
    region = rng.integers(0, 8, N)
    table["region"] = coded(region, "r")
    if leaks:
        for r in range(8):
            at = np.flatnonzero(region == r)
            table.loc[at, "pay"] = np.sort(table["pay"].to_numpy()[at])
    return Leak(table, [noisy(rng, table)], {"columns": ["pay", "age"]})


def partner(rng: np.random.Generator, leaks: bool = True) -> Leak:
    """Pay of the partner, and the number of the couple."""
    table = people(rng, 0.0)
    couple = rng.permutation(np.arange(N) // 2)
    order = np.argsort(couple, kind="stable")
    other = np.empty(N)
    p = table["pay"].to_numpy()
    other[order[0::2]] = p[order[1::2]]
    other[order[1::2]] = p[order[0::2]]
    if not leaks:
        other = rng.permutation(other)
    return Leak(
        table, [noisy(rng, table).assign(couple=couple, other=other)], {"columns": ["pay", "age"]}
    )


def total(rng: np.random.Generator, leaks: bool = True) -> Leak:
    """Total and number of members of households, most of one."""
    table = people(rng, 0.0)
    hid = np.where(rng.random(N) < 0.6, np.arange(N), rng.integers(0, N // 4, N) + 10000)
    p = table["pay"].groupby(hid).transform("sum")
    s = table["pay"].groupby(hid).transform("size")
    return Leak(
        table,
        [noisy(rng, table).assign(total=own(rng, leaks, p).to_numpy(), size_=np.asarray(s))],
        {"columns": ["pay", "age"]},
    )


def blanks_band(rng: np.random.Generator, leaks: bool = True) -> Leak:
    """Blanks of three further columns where pay is in certain quarters."""
    table = people(rng, 0.0)
    b = pd.qcut(own(rng, leaks, table["pay"]), 8, labels=False).to_numpy()
    c = noisy(rng, table)
    for k in range(3):
        c[f"q{k}"] = pd.Series(rng.normal(size=N).round(3)).where((b >> k) & 1 == 1)
    return Leak(table, [c])


def blanks_copies(rng: np.random.Generator, leaks: bool = True) -> Leak:
    """Blanks of pay in three copies: their pattern is an octile."""
    table = people(rng, 0.0)
    b = pd.qcut(own(rng, leaks, table["pay"]), 8, labels=False).to_numpy()
    cs = []
    for k in range(3):
        c = noisy(rng, table, 8.0)
        c["pay"] = c["pay"].where((b >> k) & 1 == 1)
        cs.append(c)
    return Leak(table, cs)


def last_digit(rng: np.random.Generator, leaks: bool = True) -> Leak:
    """A category that is the last digit of a number in clear."""
    x = rng.integers(0, 5, N)
    num = rng.integers(1000, 9999, N) * 10 + x + 5 * rng.integers(0, 2, N)
    if not leaks:
        num = rng.permutation(num)
    table = pd.DataFrame({"region": coded(x, "r"), "code": coded(num, "n")})
    sw = swapped(rng, table["region"])
    return Leak(table, [table.assign(region=sw)], {"categorical": ["region"]}, True)


def one_factor(rng: np.random.Generator, leaks: bool = True) -> Leak:
    """Pay and bonus multiplied by one factor, and the true bonus."""
    table = people(rng, 0.0)
    bonus = rng.lognormal(6, 0.4, N)
    u = rng.lognormal(0, 1.5, N)
    return Leak(
        table,
        [
            noisy(rng, table).assign(
                pay=table["pay"] * u, b1=bonus * (u if leaks else rng.permutation(u)), b2=bonus
            )
        ],
        {"columns": ["pay", "age"]},
    )


def exclusive(rng: np.random.Generator, leaks: bool = True) -> Leak:
    """Two whole numbers with pay as their exclusive or."""
    table = people(rng, 0.0)
    k = rng.integers(0, 2**14, N)
    p = own(rng, leaks, table["pay"]).astype(int).to_numpy()
    return Leak(table, [noisy(rng, table).assign(a=p ^ k, b=k)])


def modular(rng: np.random.Generator, leaks: bool = True) -> Leak:
    """Two numbers with pay as their sum modulo 20,000."""
    table = people(rng, 0.0)
    k = rng.uniform(0, 2e4, N).round(2)
    p = own(rng, leaks, table["pay"]).to_numpy()
    return Leak(table, [noisy(rng, table).assign(a=((p - k) % 2e4).round(2), b=k)])


def offset_by_code(rng: np.random.Generator, leaks: bool = True) -> Leak:
    """One noise for each of 12 branches."""
    table = people(rng, 0.0)
    code = rng.integers(0, 12, N)
    z = rng.normal(size=12) * 3 * table["pay"].std()
    c = noisy(rng, table)
    c["pay"] = (
        table["pay"]
        + z[code if leaks else rng.integers(0, 12, N)]
        + (0 if leaks else rng.normal(size=N) * 2 * table["pay"].std())
    )
    return Leak(table, [c.assign(branch=coded(code, "b"))])


def code_and_sum(rng: np.random.Generator, leaks: bool = True) -> Leak:
    """Pay as the sum of a base by grade and a shown supplement."""
    table = people(rng, 0.0)
    g = rng.integers(0, 40, N)
    base = rng.lognormal(8, 0.4, 40)
    s = rng.normal(size=N) * 1500
    pay = base[g] + s
    table["pay"] = (pay if leaks else rng.permutation(pay)).round(2)
    return Leak(
        table,
        [noisy(rng, table).assign(grade=coded(g, "g"), supplement=s.round(2))],
        {"columns": ["pay", "age"]},
    )


def code_times(rng: np.random.Generator, leaks: bool = True) -> Leak:
    """Pay as hours times a rate by grade."""
    table = people(rng, 0.0)
    g = rng.integers(0, 20, N)
    rate = rng.lognormal(3, 0.6, 20)
    h = rng.uniform(20, 200, N)
    pay = rate[g] * h
    table["pay"] = (pay if leaks else rng.permutation(pay)).round(2)
    return Leak(
        table,
        [noisy(rng, table).assign(grade=coded(g, "g"), hours=h.round(2))],
        {"columns": ["pay", "age"]},
    )


def two_waves(rng: np.random.Generator, leaks: bool = True) -> Leak:
    """Persons in two waves under other numbers; the second shows last year's pay and the date of birth."""
    half = N // 2
    born = rng.permutation(20000)[:half]
    pay = rng.lognormal(8, 0.4, N).round(2)
    table = pd.DataFrame({"pay": pay, "age": rng.uniform(18, 90, N).round(1)})
    last = np.r_[np.full(half, np.nan), pay[:half] if leaks else rng.permutation(pay[:half])]
    d = (pd.Timestamp("1940-01-01") + pd.to_timedelta(np.r_[born, born], "D")).strftime("%d.%m.%Y")
    c = noisy(rng, table).assign(last=last, born=d, id=[f"P{k:05}" for k in rng.permutation(N)])
    o = rng.permutation(N)
    return Leak(
        table.iloc[o].reset_index(drop=True),
        [c.iloc[o].reset_index(drop=True)],
        {"columns": ["pay", "age"]},
    )


def partner_category(rng: np.random.Generator, leaks: bool = True) -> Leak:
    """The category of the partner, and the number of the couple."""
    couple = rng.permutation(np.arange(N) // 2)
    order = np.argsort(couple, kind="stable")
    x = rng.integers(0, 4, N)
    other = np.empty(N, int)
    other[order[0::2]] = x[order[1::2]]
    other[order[1::2]] = x[order[0::2]]
    if not leaks:
        other = rng.permutation(other)
    table = pd.DataFrame({"region": coded(x, "r")})
    sw = swapped(rng, table["region"])
    return Leak(
        table,
        [table.assign(region=sw, couple=coded(couple, "c"), other=coded(other, "o"))],
        {"categorical": ["region"]},
        True,
    )


def address_category(rng: np.random.Generator, leaks: bool = True) -> Leak:
    """One category for each household, with two codes that identify it."""
    house = rng.permutation(np.arange(N) // 10)
    x = rng.integers(0, 4, N // 10)[house] if leaks else rng.integers(0, 4, N)
    table = pd.DataFrame({"region": coded(x, "r")})
    sw = swapped(rng, table["region"], 0.4)
    return Leak(
        table,
        [table.assign(region=sw, street=coded(house % 10, "s"), number=coded(house // 10, "n"))],
        {"categorical": ["region"]},
        True,
    )


def band_category(rng: np.random.Generator, leaks: bool = True) -> Leak:
    """A category that is a band of a sum of two numbers in clear."""
    a, b = rng.normal(size=(2, N))
    x = pd.qcut(a + b, 4, labels=False)
    table = pd.DataFrame({"region": coded(x if leaks else rng.permutation(x), "r")})
    sw = swapped(rng, table["region"])
    return Leak(
        table,
        [table.assign(region=sw, a=a.round(4), b=b.round(4))],
        {"categorical": ["region"]},
        True,
    )


def sorted_categories(rng: np.random.Generator, leaks: bool = True) -> Leak:
    """Categories: blanks in a further column show the half, another column the parity."""
    x = rng.integers(0, 4, N)
    u = x if leaks else rng.permutation(x)
    table = pd.DataFrame({"region": coded(x, "r")})
    sw = swapped(rng, table["region"])
    note = pd.Series(rng.normal(size=N).round(3)).where(u < 2)
    return Leak(
        table,
        [table.assign(region=sw, note=note, other=coded(rng.integers(0, 50, N) * 2 + u % 2, "k"))],
        {"categorical": ["region"]},
        True,
    )


def mates(rng: np.random.Generator) -> Any:
    """Return each row's partner, drawn at random."""
    order, found = rng.permutation(N), np.empty(N, dtype=int)
    found[order] = order.reshape(-1, 2)[:, ::-1].ravel()
    return found


def reference(rng: np.random.Generator, leaks: bool = True) -> Leak:
    """The number and the pay of the partner, after six other numbers."""
    table, mate = people(rng, 0.0), mates(rng)
    person = coded(rng.permutation(N) + 1000, "P-")
    numbers = {f"x{k}": rng.normal(size=N).round(3) for k in range(6)}
    beside = {"id": person, "partner": person.to_numpy()[mate]}
    their = own(rng, leaks, table["pay"])
    copy = noisy(rng, table).assign(**numbers, **beside, income=np.asarray(their)[mate])
    return Leak(table, [copy], {"columns": ["pay", "age"]})


def reference_category(rng: np.random.Generator, leaks: bool = True) -> Leak:
    """The number and the category of the partner."""
    x, mate = rng.integers(0, 4, N), mates(rng)
    table, person = pd.DataFrame({"region": coded(x, "r")}), rng.permutation(N)
    their = coded((x if leaks else rng.permutation(x))[mate], "o")
    copy = table.assign(region=swapped(rng, table["region"]), id=person, other=their)
    return Leak(table, [copy.assign(partner=person[mate])], {"categorical": ["region"]}, True)


def account(rng: np.random.Generator, leaks: bool = True) -> Leak:
    """Balances of 60 accounts after payments on shuffled days."""
    table, at, day = people(rng, 0.0), rng.integers(0, 60, N), rng.permutation(N)
    order, paid = np.lexsort((day, at)), np.asarray(own(rng, leaks, table["pay"]))
    balance = np.empty(N)
    balance[order] = pd.Series(paid[order]).groupby(at[order]).cumsum()
    copy = noisy(rng, table).assign(account=coded(at, "a"), day=day, balance=balance.round(2))
    return Leak(table, [copy], {"columns": ["pay", "age"]})


def coordinates(rng: np.random.Generator, leaks: bool = True) -> Leak:
    """Latitude and longitude, of which pay is a smooth function."""
    at = rng.uniform(0.0, 10.0, (N, 2))
    waves = at @ rng.normal(0.0, 2.4, (2, 300)) + rng.uniform(0.0, 2.0 * np.pi, 300)
    field = np.cos(waves).sum(axis=1) / np.sqrt(150.0)
    table = people(rng, 0.0).assign(pay=np.exp(8.0 + 0.4 * field).round(2))
    shown = at.T if leaks else rng.permutation(at).T
    copy = noisy(rng, table).assign(lat=shown[0].round(4), lon=shown[1].round(4))
    return Leak(table, [copy], {"columns": ["pay", "age"]})


KINDS: tuple[Kind, ...] = (
    grade,
    ranks,
    renamed,
    bands,
    household,
    panel,
    tail,
    kept,
    one_noise,
    product,
    parts,
    blanks,
    branch,
    every_second,
    beside_categories,
    shares,
    *SHOWN,
    crossed_bands,
    graded_noise,
    sorted_copy,
    exact_top,
    within_household,
    next_category,
    split_category,
    ratio_of,
    subgroup,
    subgroup_text,
    numbered,
    weekday_category,
    weight,
    two_dates,
    address,
    site,
    hashed,
    within_region,
    partner,
    total,
    blanks_band,
    blanks_copies,
    last_digit,
    one_factor,
    exclusive,
    modular,
    offset_by_code,
    code_and_sum,
    code_times,
    two_waves,
    partner_category,
    address_category,
    band_category,
    sorted_categories,
    reference,
    reference_category,
    account,
    coordinates,
)


def verdict(leak: Leak, folder: Path) -> Any:
    """Return the record of ``exposure`` for a leaking release, written to a folder."""
    return audited_leak(leak, folder).expectations[0]


def audited_leak(leak: Leak, folder: Path) -> Any:
    """Return the result of auditing a leaking release, written to a folder."""
    leak.table.to_csv(folder / "table.csv", index=False)
    names = [str(folder / f"copy-{place}.csv") for place in range(len(leak.copies))]
    for name, copy in zip(names, leak.copies, strict=True):
        copy.to_csv(name, index=False)
    scheme = "published-categories" if leak.categories else "published"
    document = {
        "schema": 1,
        "title": "a leak",
        "data": {"source": str(folder / "table.csv"), **(leak.data or {})},
        "schemes": [{"name": scheme, "copies": names, "aligned": "key" not in (leak.data or {})}],
        "knowledge": ["perfect"],
        "coalitions": ["all"],
        "attacks": "all" if leak.categories else ["llse"],
        "expect": [{"exposure": EXPOSURE}],
    }
    return auditor.run(document)
