"""Places in a scenario: written, read back, and set."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.errors import AuditorError
from auditor.field_paths import MAX_DEPTH, format_path, parse_path, set_at

paths = st.lists(
    st.text() | st.integers() | st.text(st.sampled_from("a0.[]\"'\\-_ ")), max_size=8
).map(tuple)


@settings(max_examples=200, deadline=None)
@given(paths)
def test_a_written_path_reads_as_itself(path):
    assert parse_path(format_path(path)) == path


@given(st.text(st.sampled_from("a0.[]\"'\\-_ ")) | st.text())
def test_any_text_is_a_path_or_an_error(text):
    try:
        path = parse_path(text)
    except AuditorError:
        return
    assert parse_path(format_path(path)) == path


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ((), ""),
        (("attacks", 1, "components"), "attacks[1].components"),
        (("corner-wave", "at-least"), "corner-wave.at-least"),
        (("a", "x.y"), 'a["x.y"]'),
        (("x.y", "a"), '["x.y"].a'),
        (("a", 'say "x"'), r'a["say \"x\""]'),
        (("a", ""), 'a[""]'),
        (("a", "0"), 'a["0"]'),
        ((0, 1), "[0][1]"),
        (("größe", -1), "größe[-1]"),
        (("a", "\x1b[31m"), r'a["\u001b[31m"]'),
    ],
)
def test_format(path, text):
    assert format_path(path) == text
    assert parse_path(text) == path


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("schemes[0].levels.count", ("schemes", 0, "levels", "count")),
        ("schemes[corner-wave].levels", ("schemes", "corner-wave", "levels")),
        ("schemes[two words]", ("schemes", "two words")),
        ("a['x.y']", ("a", "x.y")),
        ("a['it''s']", ("a", "it's")),
        ("a.0.1e3", ("a", "0", "1e3")),
        ("a[007]", ("a", 7)),
    ],
)
def test_parse_takes_more_than_format_writes(text, path):
    assert parse_path(text) == path


@pytest.mark.parametrize(
    ("text", "character"),
    [
        (".a", 1),
        ("a.", 2),
        ("a..b", 2),
        ("a[", 2),
        ("a[]", 2),
        ("a[0", 2),
        ("a]", 2),
        ("a[0]b", 5),
        ("a.[0]", 2),
        ("a b", 2),
        ('a["x]', 2),
        ('a["\\q"]', 3),
        ("a['x]", 2),
        ("a[0]]", 5),
        (" ", 1),
    ],
)
def test_a_bad_path_says_where_and_what_was_expected(text, character):
    with pytest.raises(
        AuditorError, match=f"is not a path: at character {character} expected a key, .key"
    ) as caught:
        parse_path(text)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize(
    "text", ['["' + "\\" * 50_001, "['" + "'" * 50_001, "[" * 50_000, "a" * 50_000 + "["]
)
def test_a_hostile_path_is_refused_fast_and_briefly(text):
    with pytest.raises(AuditorError) as caught:
        parse_path(text)
    assert len(str(caught.value)) < 300


def scenario():
    return {
        "seed": 1,
        "data": {"source": "census-like", "rows": 100},
        "empty": None,
        "schemes": [
            "corner-wave",
            {"name": "uniform", "levels": [0.5]},
            {"name": "uniform", "id": "second"},
        ],
        "attacks": ["llse", "llse"],
    }


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("seed", {"seed": 9}),
        ("title", {"title": 9}),
        ("data.rows", {"data": {"source": "census-like", "rows": 9}}),
        ("data.columns", {"data": {"source": "census-like", "rows": 100, "columns": 9}}),
        ("sweep.a.b", {"sweep": {"a": {"b": 9}}}),
        ('sweep["data.rows"]', {"sweep": {"data.rows": 9}}),
        ("empty.a", {"empty": {"a": 9}}),
        ("attacks[1]", {"attacks": ["llse", 9]}),
    ],
)
def test_set_at(path, expected):
    before = scenario()
    assert set_at(before, parse_path(path), 9) == {**scenario(), **expected}
    assert before == scenario()


@pytest.mark.parametrize(
    ("path", "number", "item"),
    [
        ("schemes[0].levels", 0, {"name": "corner-wave", "levels": 9}),
        ("schemes[0].levels.count", 0, {"name": "corner-wave", "levels": {"count": 9}}),
        ("schemes[corner-wave].levels", 0, {"name": "corner-wave", "levels": 9}),
        ("schemes.corner-wave.levels", 0, {"name": "corner-wave", "levels": 9}),
        ("schemes[corner-wave]", 0, 9),
        ("schemes[1].levels[0]", 1, {"name": "uniform", "levels": [9]}),
        ("schemes[second].levels", 2, {"name": "uniform", "id": "second", "levels": 9}),
    ],
)
def test_set_at_in_lists(path, number, item):
    schemes = scenario()["schemes"]
    schemes[number] = item
    assert set_at(scenario(), parse_path(path), 9)["schemes"] == schemes


def test_an_id_goes_before_a_name():
    value = [{"name": "llse"}, {"name": "udr", "id": "llse"}]
    assert set_at(value, ("llse", "x"), 1) == [
        {"name": "llse"},
        {"name": "udr", "id": "llse", "x": 1},
    ]


def test_the_whole_document_can_be_set():
    assert set_at({"a": 1}, (), [2]) == [2]
    assert set_at(None, ("a",), 2) == {"a": 2}


def test_the_result_shares_nothing():
    shared = [1]
    value, new = {"a": shared, "b": shared}, {"c": [2]}
    result = set_at(value, ("d",), new)
    assert set_at(value, ("a", 0), 5) == {"a": [5], "b": [1]}
    result["a"].append(3)
    result["d"]["c"].append(3)
    assert (value, new, result["b"]) == ({"a": [1], "b": [1]}, {"c": [2]}, [1])


NOWHERE = """
schemes[3] ~ schemes has 3 items, numbered from 0; got [3]
schemes[-1].x ~ schemes has 3 items, numbered from 0; got [-1]
schemes[1].levels[1] ~ schemes[1].levels has 1 item, numbered from 0; got [1]
schemes[cornerwave].x ~ schemes is a list of 3 items, none named 'cornerwave'; did you mean 'corner-wave'?
schemes[xyz].x ~ schemes is a list of 3 items, none named 'xyz'; valid are corner-wave, second, uniform
schemes[uniform].x ~ schemes has several items named 'uniform': [1], [2]; choose by number or id
attacks[llse] ~ attacks has several items named 'llse': [0], [1]; choose by number or id
attacks.0 ~ attacks is a list of 2 items, none named '0'; write attacks[0]
schemes.99.x ~ schemes is a list of 3 items, none named '99'; valid are corner-wave, second, uniform
data.source.rows ~ data.source is text, so nothing can be set below it; got data.source.rows; did you mean
data.rows.x.y ~ data.rows is an integer, so nothing can be set below it; got data.rows.x.y; valid are rows
seed[0] ~ seed is an integer, so nothing can be set below it; got seed[0]
schemes[0][0] ~ schemes[0] is text, so nothing can be set below it; got schemes[0][0]
data[0] ~ data is a mapping, so [0] is no place in it; valid are rows, source
[0] ~ the document is a mapping, so [0] is no place in it; valid are
empty[0] ~ empty is not given, so it has no item [0]
missing[0].x ~ missing is not given, so it has no item [0]
missing.below[0] ~ missing.below is not given, so it has no item [0]
"""


@pytest.mark.parametrize("line", NOWHERE.strip().splitlines())
def test_places_that_do_not_exist(line):
    (path, message), value = line.split(" ~ "), scenario()
    with pytest.raises(AuditorError) as caught:
        set_at(value, parse_path(path), 9)
    assert str(caught.value).startswith(message)
    assert value == scenario()


def test_a_text_is_only_short_for_a_mapping_in_a_list():
    for value in ("corner-wave", {"a": "corner-wave"}):
        path = ("x",) if isinstance(value, str) else ("a", "x")
        with pytest.raises(AuditorError, match="is text, so nothing can be set below it"):
            set_at(value, path, 1)


def test_an_endless_path_is_refused():
    with pytest.raises(AuditorError, match="longer than the 50"):
        set_at({}, parse_path(".".join("a" * (MAX_DEPTH + 1))), 1)
    with pytest.raises(AuditorError, match="longer than the 50"):
        set_at({}, ("a",) * 100_000, 1)


keys = st.sampled_from(["a", "b", "name", "id"])
json_values = st.recursive(
    st.none() | st.integers() | keys,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=10,
)


def get(value, path):
    for element in path:
        value = value[element]
    return value


@settings(max_examples=150, deadline=None)
@given(json_values, st.lists(keys | st.integers(-1, 2), max_size=4).map(tuple), json_values)
def test_what_is_set_is_found_and_the_original_is_untouched(value, path, new):
    before = copy.deepcopy(value)
    try:
        result = set_at(value, path, new)
    except AuditorError:
        return
    finally:
        assert value == before
    try:
        found = get(result, path)
    except TypeError:  # an item was chosen by name, and may have another name now
        return
    assert found == new
