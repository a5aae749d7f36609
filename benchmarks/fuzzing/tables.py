"""Mutations of CSV and Parquet tables; every cell is a canary."""

from __future__ import annotations

import datetime
import io
import json
import random
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.fuzzing.judge import Case, secrets

ROWS = 12
Rows = list[list[str]]

DATA = {
    "numbers": "{source: FILE}",
    "some numbers": "{source: FILE, columns: [age, income]}",
    "without missing": "{source: FILE, columns: [age, income], missing: drop, standardize: true}",
    "filled": "{source: FILE, columns: [income, age], missing: mean, rows: 8}",
    "categories": "{source: FILE, columns: [disease], categorical: [disease]}",
    "words": "{source: FILE, columns: [city, disease], categorical: [city, disease]}",
    "bins": "{source: FILE, columns: [age, income], bin: {age: {quantile: 3}, income: {equal-width: 2}}}",
    "anonymous": "{source: FILE, columns: [age, x, income]}",
}
ADDITIVE = "schemes: [{name: corner-wave, levels: [0.5, 1.0]}, {name: correlated, levels: [0.5, 1.0]}]\nattacks: [ndr, llse]\n"
UNIFORM = "schemes: [{name: uniform-multilevel, levels: [0.5, 0.2]}]\nattacks: [posterior]\n"
ANONYMOUS = "schemes: [{name: k-anonymity, quasi: [age, x], sensitive: income, levels: [2]}]\nattacks: [linkage, homogeneity]\n"
PUBLISHED = "schemes: [{name: published, copies: [FILE]}]\nattacks: [ndr, svd-filter]\n"

COMMANDS = {
    "perturbed": (
        "perturb",
        "FILE",
        "--scheme",
        "corner-wave",
        "--levels",
        "0.5",
        "--output",
        "out",
    ),
    "one column perturbed": (
        "perturb",
        "FILE",
        "--scheme",
        "corner-wave",
        "--levels",
        "0.5",
        "--output",
        "out",
        "--columns",
        "age",
    ),
    "categories perturbed": (
        "perturb",
        "FILE",
        "--scheme",
        "uniform",
        "--levels",
        "0.5",
        "--output",
        "out",
        "--columns",
        "disease",
    ),
    "in a scenario's place": ("check", "FILE"),
    "to make a scenario for": ("new", "new.yaml", "--data", "FILE"),
}
WAYS = (*DATA, "copy", *COMMANDS)

CELLS = [
    "",
    " ",
    "NA",
    "nan",
    "NaN",
    "inf",
    "-inf",
    "1e400",
    "-1e308",
    "1e308",
    "5e-324",
    "9" * 40,
    "18446744073709551616",
    "-9223372036854775809",
    "2020-01-31",
    "31.12.1999 10:30",
    "١٢٣",
    "１２",
    "TRUE",
    "false",
    "1,5",
    "£5",
    "12 %",
    "0x1F",
    "1_000",
    "+7",
    "--",
    "1e",
    "<script>alert(1)</script>",
    "\x1b[2J",
    "\x07",
    "\x00",
    "\u202e",
    "\ufeff",
    "\u2028",
    "💥",
    "=1+1",
    '"',
    '""',
    "'",
    "a\nb",
    "a\rb",
    "a;b",
    "a\tb",
    "\\",
    "null",
    "None",
    "#N/A",
    "0",
    "-0.0",
    "0.1",
    "x" * 5000,
    "Infinity",
    "1e-400",
    "é",
]
NAMES = [
    "",
    " ",
    "age",
    "AGE",
    "income ",
    "<script>alert(1)</script>",
    "\x1b[31m",
    "\x00",
    "\u202egnp",
    "a\nb",
    "*",
    "5",
    "5.5",
    "2020-01-31",
    "nan",
    "age.1",
    "x" * 3000,
    "💥",
    "\ufeff",
    "__index_level_0__",
    "a,b",
    '"',
    "'",
    "{}",
    "%s",
    "__class__",
    "١٢٣",
    "index",
    "None",
    "null",
    "true",
    "~",
    "- a",
    ": ",
]


def canaries(draw: random.Random) -> Rows:
    """Return a header and records: numbers, integers, some words, a word each."""

    def word() -> str:
        return "Zq" + "".join(draw.choices("abcdefghijklmnop", k=8))

    def number() -> str:
        return f"{draw.uniform(10_000, 99_999):.6f}"

    few = [word() for _ in range(3)]
    records = [
        [number(), str(draw.randrange(10**9, 10**10)), number(), few[k % 3], word()]
        for k in range(ROWS)
    ]
    return [["age", "income", "x", "disease", "city"], *records]


@cache
def plain_tables() -> Mapping[str, bytes]:
    """Return the tables that mutated scenarios may name.

    `t.csv`, `t.parquet`, a copy `y.csv` and a covariance `noise.csv`.
    """
    draw = random.Random(14)
    rows = canaries(draw)
    numbers = np.array([[float(cell) for cell in row[:3]] for row in rows[1:]])
    noisy = (
        numbers + np.random.default_rng(14).normal(size=numbers.shape) * numbers.std(axis=0) * 0.5
    )
    return {
        "t.csv": csv_text(rows),
        "t.parquet": parquet(arrow(rows)),
        "y.csv": csv_text([rows[0][:3], *[[repr(float(cell)) for cell in row] for row in noisy]]),
        "noise.csv": b"2,0,0\n0,3,0\n0,0,4\n",
    }


def csv_text(rows: Rows) -> bytes:
    """Return CSV, quoted where it must be."""

    def cell(text: str) -> str:
        return (
            '"' + text.replace('"', '""') + '"' if any(mark in text for mark in ',"\r\n') else text
        )

    return "".join(",".join(map(cell, row)) + "\n" for row in rows).encode("utf-8", "surrogatepass")


def arrow(rows: Rows) -> pa.Table:
    """Return a table of numbers and text."""
    kinds: list[Callable[[str], Any]] = [float, int, float, str, str]
    return pa.table(
        {
            name: [kind(row[j]) for row in rows[1:]]
            for j, (name, kind) in enumerate(zip(rows[0], kinds, strict=True))
        }
    )


def parquet(table: pa.Table, **options: Any) -> bytes:
    """Return a file."""
    stream = io.BytesIO()
    pq.write_table(table, stream, **options)
    return stream.getvalue()


# -- records
# -----------------------------------------------------------------------------------------------------------


def _cells(rows: Rows, draw: random.Random) -> None:
    for _ in range(draw.choice([1, 1, 4, 30])):
        row = draw.choice(rows[1:])
        row[draw.randrange(len(row))] = draw.choice(CELLS)


def _column_of(rows: Rows, draw: random.Random) -> None:
    place, choices = (
        draw.randrange(5),
        draw.choice([[draw.choice(CELLS)], draw.choices(CELLS, k=3), [row[3] for row in rows[1:]]]),
    )
    for row in rows[1:]:
        row[place] = draw.choice(choices)


def _names(rows: Rows, draw: random.Random) -> None:
    for _ in range(draw.choice([1, 1, 2, 5])):
        rows[0][draw.randrange(5)] = draw.choice(NAMES)


def _headerless(rows: Rows, draw: random.Random) -> None:
    header = rows.pop(0)
    rows[draw.randrange(len(rows)) : 0] = draw.choice([[], [], [header]])


def _ragged(rows: Rows, draw: random.Random) -> None:
    row = draw.choice(rows)
    if draw.random() < 0.5:
        row.insert(draw.randrange(len(row) + 1), draw.choice([*CELLS, row[0]]))
    else:
        row.pop(draw.randrange(len(row)))


def _few(rows: Rows, draw: random.Random) -> None:
    del rows[draw.choice([1, 2, 2, 3, 4]) :]


def _repeated(rows: Rows, draw: random.Random) -> None:
    source = draw.randrange(len(rows))
    rows[draw.randrange(1, len(rows) + 1) : 0] = [
        list(rows[source]) for _ in range(draw.choice([1, 3, 50]))
    ]


def _wide(rows: Rows, draw: random.Random) -> None:
    more = draw.choice([3, 50, 50, 400, 6000])
    for place, row in enumerate(rows):
        row.extend(f"c{k}" if place == 0 else row[k % 5] for k in range(more))


def _doubled(rows: Rows, draw: random.Random) -> None:
    source, to = draw.randrange(5), draw.randrange(5)
    for row in rows[draw.randrange(2) :]:
        row[to] = row[source]


def _turned(rows: Rows, draw: random.Random) -> None:
    rows[:] = [list(column) for column in zip(*rows, strict=True)]


OF_RECORDS: dict[str, Callable[[Rows, random.Random], None]] = {
    "nasty cells": _cells,
    "a column of something else": _column_of,
    "nasty names": _names,
    "no header, or in the middle": _headerless,
    "ragged records": _ragged,
    "few records": _few,
    "records repeated": _repeated,
    "many columns": _wide,
    "a column twice": _doubled,
    "rows for columns": _turned,
}


# -- CSV text
# ----------------------------------------------------------------------------------------------------------


def _marks(text: bytes, draw: random.Random) -> bytes:
    mark = draw.choice([b";", b"\t", b"|", b" ", b", ", b",,"])
    return text.replace(b",", mark)


def _breaks(text: bytes, draw: random.Random) -> bytes:
    ends = draw.choice(
        [
            [b"\r\n"],
            [b"\r"],
            [b"\n", b"\r\n"],
            [b"\n", b"\r", b"\n\n"],
            [b"\n\r"],
            [b""],
            [b",\n"],
            [b"\x0b"],
        ]
    )
    return b"".join(line + draw.choice(ends) for line in text.split(b"\n")[:-1])


def _quotes(text: bytes, draw: random.Random) -> bytes:
    for _ in range(draw.choice([1, 1, 2, 3])):
        place = draw.choice(
            [0, draw.randrange(30), draw.randrange(len(text)), text.find(b"\n") + 1]
        )
        text = text[:place] + draw.choice([b'"', b'""', b"'", b'"\n']) + text[place:]
    return text


def _encoded(text: bytes, draw: random.Random) -> bytes:
    return draw.choice(
        [
            lambda: b"\xef\xbb\xbf" + text,
            lambda: b"\xef\xbb\xbf" * 2 + text,
            lambda: text.decode("utf-8", "replace").encode("utf-16"),
            lambda: text.replace(b"a", b"\xe9", 2),
            lambda: text.replace(b"e", b"\xed\xa0\x80", 1),
            lambda: text + b"\x1a",
            lambda: b"\n\n" + text,
            lambda: b"# a note\n" + text,
            lambda: b"sep=,\n" + text,
            lambda: b"PK\x03\x04" + text,
            lambda: text.replace(b"\n", b"\0\n", 1),
            lambda: b"",
            lambda: b"\n",
            lambda: b'"',
            lambda: text[:-1],
            lambda: text + b"total,,,,\n",
        ]
    )()


def _damaged(text: bytes, draw: random.Random) -> bytes:
    changed = bytearray(text)
    for _ in range(draw.choice([1, 3, 20])):
        changed[draw.randrange(len(changed))] = draw.randrange(256)
    start = draw.randrange(len(changed))
    return bytes(changed) if draw.random() < 0.6 else bytes(changed[:start])


OF_TEXT: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "other separators": _marks,
    "other line ends": _breaks,
    "stray quotes": _quotes,
    "other encodings, nothing": _encoded,
    "damaged text": _damaged,
}


# -- Parquet
# -----------------------------------------------------------------------------------------------------------

_DAY = datetime.datetime(2020, 1, 31, 10, 30)
COLUMNS: list[Callable[[list[Any]], pa.Array]] = [
    lambda cells: pa.array([[cell] for cell in cells]),
    lambda cells: pa.array([{"a": cell} for cell in cells]),
    lambda cells: pa.array([[(str(cell), 1)] for cell in cells], pa.map_(pa.string(), pa.int64())),
    lambda cells: pa.array([str(cell).encode() for cell in cells]),
    lambda cells: pa.array([str(cell) for cell in cells], pa.large_string()),
    lambda cells: pa.array([str(cell) for cell in cells]).dictionary_encode(),
    lambda cells: pa.nulls(len(cells)),
    lambda cells: pa.array([None] * (len(cells) - 1) + cells[-1:]),
    lambda cells: pa.array([Decimal(str(k)) / 7 for k in range(len(cells))]),
    lambda cells: pa.array([k % 2 == 0 for k in range(len(cells))]),
    lambda cells: pa.array([_DAY] * len(cells)),
    lambda cells: pa.array(
        [_DAY + datetime.timedelta(hours=k) for k in range(len(cells))],
        pa.timestamp("ns", tz="Europe/Paris"),
    ),
    lambda cells: pa.array(
        [_DAY.date() + datetime.timedelta(days=k * 99_000) for k in range(len(cells))], pa.date32()
    ),
    lambda cells: pa.array([datetime.timedelta(seconds=k) for k in range(len(cells))]),
    lambda cells: pa.array([_DAY.time()] * len(cells)),
    lambda cells: pa.array(range(len(cells)), pa.int8()),
    lambda cells: pa.array([2**64 - 1 - k for k in range(len(cells))], pa.uint64()),
    lambda cells: pa.array([float("nan"), *map(float, range(1, len(cells)))]),
    lambda cells: pa.array([1e308 * (-1) ** k for k in range(len(cells))]),
    lambda cells: pa.array([float("inf"), *map(float, range(1, len(cells)))]),
    lambda cells: pa.array(np.arange(len(cells), dtype=np.float16)),
    *(
        lambda cells, unit=unit: pa.array([unit * (k + 1) for k in range(len(cells))])
        for unit in (1e-100, 1e-60, 1e30, 1e60, 1e100, 1e150)
    ),
    lambda cells: pa.array([7.0] * len(cells)),
    lambda cells: pa.array([5e-324 * k for k in range(len(cells))]),
    lambda cells: pa.array([f"\x1b[{k % 2}J<b>" for k in range(len(cells))]),
    lambda cells: pa.array([1e15 + k * 0.125 for k in range(len(cells))]),
]


def _typed(table: pa.Table, draw: random.Random) -> bytes:
    for _ in range(draw.choice([1, 1, 2, 4])):
        place = draw.randrange(table.num_columns)
        column = draw.choice(COLUMNS)(table.column(place).to_pylist())
        table = table.set_column(place, table.column_names[place], column)
    return parquet(table)


def _renamed(table: pa.Table, draw: random.Random) -> bytes:
    names = list(table.column_names)
    for _ in range(draw.choice([1, 2, 5])):
        names[draw.randrange(len(names))] = draw.choice(
            [*NAMES, str(table.column(0)[0]), str(table.column(1)[0])]
        )
    return parquet(table.rename_columns(names))


def _noted(table: pa.Table, draw: random.Random) -> bytes:
    column = {
        "name": "age",
        "field_name": "age",
        "pandas_type": draw.choice(["unicode", "list[x]", 3]),
        "numpy_type": "datetime64[ns]",
        "metadata": None,
    }
    notes = [
        b"{bad",
        b"\xff\xfe",
        b"[]",
        b"null",
        b"3",
        b'{"columns": 3, "index_columns": [1]}',
        b"{}",
        json.dumps({"columns": [column], "index_columns": ["age"], "column_indexes": []}).encode(),
        json.dumps(
            {
                "columns": [column],
                "index_columns": [
                    {"kind": "range", "start": 0, "stop": "x", "step": 0, "name": None}
                ],
            }
        ).encode(),
    ]
    return parquet(table.replace_schema_metadata({b"pandas": draw.choice(notes)}))


def _shaped(table: pa.Table, draw: random.Random) -> bytes:
    return draw.choice(
        [
            lambda: parquet(table, row_group_size=1),
            lambda: parquet(table.slice(0, 0)),
            lambda: parquet(table.select([])),
            lambda: parquet(table.slice(0, draw.choice([1, 2]))),
            lambda: parquet(table, compression="zstd"),
            lambda: parquet(table, version="1.0"),
            lambda: parquet(pa.concat_tables([table] * 30)),
            lambda: csv_text([table.column_names, ["1", "2", "3", "a", "b"]]),
        ]
    )()


OF_PARQUET: dict[str, Callable[[pa.Table, random.Random], bytes]] = {
    "Parquet: other types": _typed,
    "Parquet: other names": _renamed,
    "Parquet: pandas' notes": _noted,
    "Parquet: other shapes": _shaped,
    "Parquet: damaged bytes": lambda table, draw: _damaged(parquet(table), draw),
}


def mutated(draw: random.Random) -> Case:
    """Return a mutated table, with a scenario or a command that reads it."""
    kind, rows = draw.choice([*OF_RECORDS, *OF_TEXT, *OF_PARQUET]), canaries(draw)
    way, run = draw.choice(WAYS), draw.random() < 0.1
    if kind in OF_PARQUET:
        table = arrow(rows)
        return asked(
            kind,
            "t.parquet",
            OF_PARQUET[kind](table, draw),
            way,
            run,
            str(table.to_pydict()).encode(),
        )
    if kind in OF_TEXT:
        return asked(kind, "t.csv", OF_TEXT[kind](csv_text(rows), draw), way, run)
    OF_RECORDS[kind](rows, draw)
    if draw.random() < 0.2 and all(len(row) == 5 for row in rows) and len(rows) > 3:
        _cells(rows, draw)
    return asked(kind, "t.csv", csv_text(rows), way, run)


def asked(
    kind: str, name: str, content: bytes, way: str, run: bool = True, before: bytes = b""
) -> Case:
    """Return a case that reads a table.

    As a scenario's data, as a copy, for `perturb`, or in place of a scenario.
    """
    hidden = secrets({"now": content, "before": before}, b"")
    if way in COMMANDS:
        return Case(
            kind,
            {name: content},
            hidden,
            tuple(part.replace("FILE", name) for part in COMMANDS[way]),
        )
    scheme = (
        UNIFORM
        if way in ("categories", "words", "bins")
        else ANONYMOUS
        if way == "anonymous"
        else ADDITIVE
    )
    if way != "copy":
        scenario = f"data: {DATA[way]}\n{scheme}".replace("FILE", name).encode()
        return Case(kind, {name: content, "s.yaml": scenario}, hidden, run=run)
    scenario = f"data: {{source: plain.csv, columns: [age, x]}}\n{PUBLISHED}".replace(
        "FILE", name
    ).encode()
    plain = {"plain.csv": plain_tables()["t.csv"]}
    return Case(
        kind, {name: content, "s.yaml": scenario, **plain}, hidden | secrets(plain, b""), run=run
    )
