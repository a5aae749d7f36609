"""Categories that stay in their files."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from large_tables import FORMS, load, write

from auditor.base import DataError
from auditor.data.columns import scan as streamed
from auditor.data.columns.categorical_table import BLOCK_WIDTH, Categories
from auditor.data.formats import parts as pieces
from auditor.numerics.blocks import row_blocks
from tests.tiers import each_once

ROWS = 140_000
"""Three blocks."""
CSV_ROWS = 70_500


def both(monkeypatch, source, **request):
    """The table left in its file, and the same read whole."""
    monkeypatch.setattr(pieces, "CSV_BYTES", 2**18)
    monkeypatch.setattr(streamed, "HELD_BYTES", 0)
    large = load(source, **request)
    monkeypatch.setattr(streamed, "HELD_BYTES", 2**40)
    held = load(source, **request)
    assert (large.streamed, held.streamed) == (True, False)
    return large, held


def same(large, held):
    a, b = large.categorical, held.categorical
    assert a is not None
    assert b is not None
    assert [(x.name, x.labels, list(map(type, x.labels))) for x in a.attributes] == [
        (x.name, x.labels, list(map(type, x.labels))) for x in b.attributes
    ]
    for x, y in zip(a.attributes, b.attributes, strict=True):
        assert (x.scores is None) == (y.scores is None)
        assert x.scores is None or np.array_equal(x.scores, y.scores)
    assert a.rows == b.rows
    assert large.attributes == held.attributes
    assert a.read(0, 1).dtype == b.codes.dtype
    for start, stop in row_blocks(a.rows, BLOCK_WIDTH):
        assert np.array_equal(a.read(start, stop), b.read(start, stop))
        assert np.array_equal(large.read(start, stop), held.read(start, stop))
    assert np.array_equal(a.prior, b.prior)
    assert large.fingerprint() == held.fingerprint()


def people(rows=ROWS, gaps=False):
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({
        "disease": rng.choice(["flu", "HIV", "none", "cölera"], rows, p=[0.5, 0.001, 0.4, 0.099]),
        "ward": rng.integers(1, 6, rows),
        "age": rng.integers(18, 80, rows) + rng.random(rows),
        "insured": rng.random(rows) < 0.3,
        "note": [f"secret {k}" for k in range(rows)],
        "site": 1,
    })  # fmt: skip
    if gaps:
        for k, name in enumerate(frame):
            kind = float if name in ("ward", "site") else object if name != "age" else float
            frame[name] = frame[name].astype(kind).mask(rng.random(rows) < 0.01 * (k + 1))
    return frame


ASKED = {
    "text": ({"columns": ["disease", "age"]}, Categories({}, {"disease": None})),
    "text alone": ({"columns": ["disease"]}, Categories({}, {"disease": None})),
    "whatever is there": ({}, Categories({}, {"disease": None})),
    "numbers that stay numbers": ({"columns": ["ward", "age"]}, Categories({}, {"ward": None})),
    "declared": (
        {"columns": ["ward", "disease"]},
        Categories({}, {"disease": ["none", "flu", "cölera", "HIV", "?"], "ward": [5, 4, 3, 2, 1]}),
    ),
    "booleans": (
        {"columns": ["insured", "disease"]},
        Categories({}, {"insured": None, "disease": None}),
    ),
    "quantiles": ({"columns": ["age"]}, Categories({"age": {"quantile": 50}}, {})),
    "equal width, standardized": (
        {"columns": ["age", "ward"], "standardize": True},
        Categories({"age": {"equal-width": 7}}, {}),
    ),
    "edges": ({"columns": ["age"]}, Categories({"age": {"edges": [30.0, 40.0, 50.0]}}, {})),
    "a product": (
        {"columns": ["disease", "age", "ward"], "rows": 70_001},
        Categories({"age": {"quantile": 4}}, {"ward": None, "disease": None}),
    ),
}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The table in a form, with gaps or without, written once."""

    @cache
    def path(form, rows=None, gaps=False):
        rows = rows or (CSV_ROWS if "csv" in form else ROWS)
        return write(people(rows, gaps), tmp_path_factory.mktemp("people"), form)

    return path


@pytest.mark.parametrize(("asked", "form"), each_once(ASKED, FORMS))
@pytest.mark.slow_after_first
def test_the_same_as_in_memory(written, monkeypatch, form, asked):
    request, categories = ASKED[asked]
    same(*both(monkeypatch, written(form), categories=categories, **request))


@pytest.mark.parametrize(("request_", "categories"), [
    ({}, Categories({}, {"wage": None})),
    ({"columns": ["disease"]}, Categories({}, {"disease": ["flu", "HIV"]})),
    ({"columns": ["age", "site"]}, Categories({"age": {"equal-width": 2}}, {})),
    ({"columns": ["disease"], "rows": 200_000}, Categories({}, {"disease": None})),
])  # fmt: skip
def test_impossible_audits_are_refused_with_equal_words(written, monkeypatch, request_, categories):
    path = written("groups.parquet")
    told = []
    for size in (0, 2**40):
        monkeypatch.setattr(streamed, "HELD_BYTES", size)
        with pytest.raises(DataError) as error:
            load(path, categories=categories, **request_)
        told.append(str(error.value))
    assert told[0] == told[1]
    assert "secret" not in told[0]


def test_a_column_of_many_values_is_refused_without_holding_them(written, monkeypatch):
    monkeypatch.setattr(streamed, "HELD_BYTES", 0)
    with pytest.raises(DataError, match=r"'note' has more than 10,000 values") as error:
        load(
            written("groups.parquet", 30_000),
            columns=["note"],
            categories=Categories({}, {"note": None}),
        )
    assert "secret" not in str(error.value)


def test_codes_stay_those_read_first(tmp_path, monkeypatch):
    path = write(people(), tmp_path, "groups.parquet")
    monkeypatch.setattr(streamed, "HELD_BYTES", 0)
    table = load(path, categories=Categories({}, {"disease": None}), columns=["disease"])
    people().assign(disease="plague").to_parquet(path, row_group_size=7_001)
    labels = [table.categorical.labels[code] for code in table.categorical.read(0, 10)]
    assert labels == people()["disease"].head(10).tolist()
