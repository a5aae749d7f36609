"""Places in a scenario: written, read back, and set."""

import copy

import pytest
from hypothesis import given, settings, strategies as st

from auditor.base import AuditorError
from auditor.registry.parameters import MAX_DEPTH, format_path, parse_path, set_at

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


def test_format():
    for path, text in [
        ((), ""), (("attacks", 1, "components"), "attacks[1].components"),
        (("a", "x.y"), 'a["x.y"]'), (("a", 'say "x"'), r'a["say \"x\""]'), ((0, 1), "[0][1]"),
        (("a", "\x1b[31m"), r'a["\u001b[31m"]'),
    ]:  # fmt: skip
        assert format_path(path) == text
        assert parse_path(text) == path


def test_a_bad_path_says_where_and_what_was_expected():
    for text, character in [
        (".a", 1), ("a..b", 2), ("a[]", 2), ("a]", 2), ("a.[0]", 2), ('a["x]', 2), ("a['x]", 2),
        (" ", 1), ("['x']", 1),
    ]:  # fmt: skip
        with pytest.raises(
            AuditorError, match=f"is not a path: at character {character} expected a key, .key"
        ) as caught:
            parse_path(text)
        assert repr(text) in str(caught.value)


def test_a_hostile_path_is_refused_fast_and_briefly():
    for text in ['["' + "\\" * 50_001, "[" * 50_000]:
        with pytest.raises(AuditorError) as caught:
            parse_path(text)
        assert len(str(caught.value)) < 300


def scenario():
    return {
        "seed": 1, "data": {"source": "census-like", "rows": 100}, "empty": None,
        "schemes": ["corner-wave", {"name": "uniform", "levels": [0.5]}, {"name": "uniform", "id": "second"}],
        "attacks": ["llse", "llse"],
    }  # fmt: skip


def test_set_at():
    for path, expected in [
        ("seed", {"seed": 9}), ("data.rows", {"data": {"source": "census-like", "rows": 9}}),
        ("sweep.a.b", {"sweep": {"a": {"b": 9}}}), ("empty.a", {"empty": {"a": 9}}),
    ]:  # fmt: skip
        before = scenario()
        assert set_at(before, parse_path(path), 9) == {**scenario(), **expected}
        assert before == scenario()


NOWHERE = """
schemes[3] ~ schemes has 3 items, numbered from 0; got [3]
schemes[1].levels[1] ~ schemes[1].levels has 1 item, numbered from 0; got [1]
schemes[xyz].x ~ schemes is a list of 3 items, none named 'xyz'; valid are corner-wave, second, uniform
attacks[llse] ~ attacks has several items named 'llse': [0], [1]; choose by number or id
schemes.99.x ~ schemes is a list of 3 items, none named '99'; valid are corner-wave, second, uniform
data.rows.x.y ~ data.rows is an integer, so nothing can be set at data.rows.x.y
schemes[0][0] ~ schemes[0] is text, so nothing can be set at schemes[0][0]
[0] ~ the document is a mapping, so nothing can be set at [0]
missing[0].x ~ missing is null, so nothing can be set at missing[0].x
"""


def test_places_that_do_not_exist():
    for line in NOWHERE.strip().splitlines():
        (path, message), value = line.split(" ~ "), scenario()
        with pytest.raises(AuditorError) as caught:
            set_at(value, parse_path(path), 9)
        assert str(caught.value).startswith(message)
        assert value == scenario()


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
