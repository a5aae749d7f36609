"""YAML 1.2 with positions: accepted values, refusals and their places."""

import ast
import json
import math
import time

import pytest
from hypothesis import given, settings, strategies as st

from auditor.base import AuditorError, ScenarioError
from auditor.scenario.yaml_document import MAX_BYTES, Document, load, load_file, scalar


def problems(text, file=None):
    with pytest.raises(ScenarioError) as caught:
        load(text, file)
    return caught.value.problems


def only_problem(text):
    (problem,) = problems(text)
    return problem


def place(problem):
    return problem.line, problem.column


SCALARS = r"""
1e3 => 1000.0
.5 => 0.5
-0.0 => -0.0
0 => 0
+3 => 3
0o14 => 12
0xFf => 255
true => True
false => False
null => None
'1' => '1'
"true" => 'true'
'' => ''
!!str 5 => '5'
[0.25, 1] => [0.25, 1]
{estimated: {rows: 400}} => {'estimated': {'rows': 400}}
"""


def test_scalar_of_the_core_schema():
    for line in SCALARS.strip().splitlines():
        written, value = line.split(" => ")
        value, read = ast.literal_eval(value), scalar(written)
        assert read == value
        assert type(read) is type(value)
        if value == 0:
            assert math.copysign(1, read) == math.copysign(1, value)


def test_everything_else_is_text():
    for text in (
        "on off yes no NO Yes y n tRUE nULL 1_000 0b1 0o8 0xg -0x1 1:30 2012-01-01 1e 1e+ . +. e3 - --1 .infinity inf nan "
        "Infinity NaN << = 1,000 ٣ corner-wave 5.2.1".split()
    ):
        assert scalar(f"[{text!r}, x]") == [text, "x"]
        if text not in {"-", "1,000"}:  # block indicator; flow separator
            assert load(f"a: {text}").value == {"a": text}


BIG, HUGE = "9" * 400, "9" * 5000
CONTROLS = "\0 \x01 \x08 \x0b \x1b \x7f \x80 \x85 \u2028 \u2029 \ufeff \ufffe \uffff \ud800".split(
    " "
)
NINE_TIMES = [
    "a0: &a0 [x]",
    *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 40)),
]


def at(place, *texts):
    return [(text, place) for text in texts]


REFUSED = {
    "beyond the range of a double": at((1, 4), "a: 1e999", "a: -1e999", f"a: {BIG}.0"),
    "digits": at((1, 4), f"a: {HUGE}", f"a: -{HUGE}", "a: 0x" + "f" * 5000),
    "tag": [
        *at((1, 4), "a: !!python/object/apply:os.system [ls]", "a: !foo {b: 1}", "a: !!set {b, c}"),
        *at((1, 4), "a: !!timestamp 2012-01-01", "a: !!seq {b: 1}", "a: !!map x", "a: !!int x"),
        *at((3, 4), "%TAG !! tag:example.com,2000:\n---\na: !!str x"),
    ],
    "is given twice; first at line 2, column 3": at((4, 3), "a:\n  b: 1\n  c: 2\n  'b': 3"),
    "but found another document": [
        *at((2, 1), "a: 1\n---\nb: 2", "--- a\n--- b"),
        *at((4, 1), "---\na: 1\n...\n---\n"),
    ],
    "the document is empty": at(
        None, "", "\n", "# a comment\n", "---\n", "---\n...\n", "\ufeff", "&a"
    ),
    "merge key (<<)": at((3, 3), "x: &x {a: 1}\ny:\n  <<: *x\n  b: 2"),
    "is no text": at((1, 3), "? &a [*a]\n: 1"),
    "nested too deeply": [
        *at(None, *(part * 100_000 for part in ("[", "- ", "? ", '{"a":', "[{"))),
        *at(None, "&a [*a]", "x: &a {b: [1, *a]}", "&a {b: &b [*b]}"),
    ],
    "larger than 1000000 bytes": at(
        None, "a: '" + "é" * (MAX_BYTES // 2) + "'", "x" * 10 * MAX_BYTES
    ),
    "over 100000 values": at(None, "\n".join(NINE_TIMES)),
    **{
        f"the character U+{ord(sign):04X} is forbidden here": at(
            (2, 6), f"a: 1\r\né: 'x{sign}y{sign}'"
        )
        for sign in CONTROLS
    },
    "": [
        *at((1, 5), "a: b: c"),
        *at((1, 4), "a: `x`"),
        *at(None, "a: 'x", "a: 1\n b: 2", 'a: "\\q"', "a: |9\n x", "a: !e!x y", "%YAML 2.0\n--- a"),
        *at(None, "a: *", "a: *nowhere"),
    ],
}
"""Texts by what is said of them, each with its place."""


@pytest.mark.parametrize("said", REFUSED)
def test_a_refused_text_is_told_in_short_at_its_place_and_soon(said):
    for text, at in REFUSED[said]:
        start = time.perf_counter()
        problem = only_problem(text)
        assert time.perf_counter() - start < 5
        assert said in problem.message
        assert at is None or place(problem) == at
        assert problem.line >= 1
        assert problem.column >= 1
        assert len(problem.message) < 250
        assert problem.message.isprintable()


def test_sizes_at_their_limits():
    fits = "a: '" + "x" * (MAX_BYTES - 5) + "'"
    assert load(fits).value
    assert "larger than" in only_problem(fits + " ").message


# the parser takes no surrogate escapes, as which JSON writes other characters
TEXT = st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"]), max_size=20)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXT, inner, max_size=5),
    max_leaves=30,
)  # fmt: skip


def same(left, right):
    return json.dumps(left) == json.dumps(right)


@settings(max_examples=50, deadline=None)
@given(json_values, st.sampled_from([None, 1, 4]))
def test_json_reads_as_itself(value, indent):
    assert same(load(json.dumps(value, indent=indent)).value, value)


SCENARIO = """\
# a comment
seed: 2012
schemes:
  - {name: correlated, levels: {uniform: [0.25, 1.0]}}
  - corner-wave
  - name: uniform
    id: größe
    levels: &levels
      - 1
      - 2
attacks:
- llse
expect: *levels
empty:
"sweep.it": {"data.rows": [1]}
"""


def test_positions():
    for path, value_at, key_at in [
        ((), (2, 1), (2, 1)), (("seed",), (2, 7), (2, 1)), (("schemes", 0), (4, 5), (4, 5)),
        (("schemes", 0, "levels", "uniform", 1), (4, 49), (4, 49)),
        (("schemes", 2, "levels"), (8, 13), (8, 5)),
        (("schemes", 2, "levels", 1), (10, 9), (10, 9)), (("attacks",), (12, 1), (11, 1)),
        (("sweep.it", "data.rows", 0), (15, 28), (15, 28)), (("schemes", 7), (4, 3), (4, 3)),
        (("schemes", 0, "count"), (4, 5), (4, 5)),
    ]:  # fmt: skip
        document = load(SCENARIO, "x.yaml")
        assert document.position(path) == value_at
        assert document.position(path, key=True) == key_at


def test_all_problems_at_once():
    found = problems("a: 1\na: 2\nb: {c: 1, c: 2}\n1: x\nd: !foo y\n<<: {a: 1}\nf: 1e999", "s.yaml")
    assert [(p.path, p.line, p.column) for p in found] == [
        ("a", 2, 1), ("b.c", 3, 11), ("", 4, 1), ("d", 5, 4), ("", 6, 1), ("f", 7, 4),
    ]  # fmt: skip
    assert str(found[0]) == "s.yaml:2:1: a is given twice; first at line 1, column 1"


def test_depth_limit_is_exact_and_counts_through_aliases():
    assert load("[" * 50 + "]" * 50).value
    assert "nested" in only_problem("[" * 51 + "]" * 51).message
    half = "a: &a " + "[" * 25 + "]" * 25
    assert load(half + "\nb: " + "[" * 24 + "*a" + "]" * 24).value
    assert "nested" in only_problem(half + "\nb: " + "[" * 25 + "*a" + "]" * 25).message


@settings(max_examples=150, deadline=None)
@given(st.text(st.sampled_from("ab:-?[]{},#&*!|>'\"%@`~ \n\t1.e\\u<=")) | st.text())
def test_any_text_gives_a_value_or_a_problem_with_a_place(text):
    found = ()
    try:
        assert isinstance(load(text), Document)
    except ScenarioError as error:
        found = error.problems
    assert all(problem.line >= 1 and problem.column >= 1 for problem in found)


def test_problems_of_a_file_carry_its_name(tmp_path):
    for content, part, line, column in [
        (b"a: 1\nb: \xe9", "is not UTF-8: byte 0xE9", 2, 4),
        ("é: 1\r\nb: ".encode() + b"\xff", "is not UTF-8: byte 0xFF", 2, 4),
        (b"\xef\xbb\xbfa: \xe9", "is not UTF-8", 1, 4), ("a: 1".encode("utf-16"), "is not UTF-8: byte 0xFF", 1, 1),
        (b"a: 1\nb: \0", "U+0000", 2, 4), (b"", "is empty", 1, 1), (b"a: 1\na: 2", "twice", 2, 1),
        (b"x" * (MAX_BYTES + 100), "larger than", 1, 1),
    ]:  # fmt: skip
        path = tmp_path / "x.yaml"
        path.write_bytes(content)
        with pytest.raises(ScenarioError) as caught:
            load_file(path)
        (problem,) = caught.value.problems
        assert part in str(problem)
        assert (problem.file, problem.line, problem.column) == (str(path), line, column)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(AuditorError, match=r"none\.yaml: cannot be read: No such file"):
        load_file(tmp_path / "none.yaml")
    with pytest.raises(AuditorError, match="cannot be read: Is a directory"):
        load_file(tmp_path)
    with pytest.raises(AuditorError, match="cannot be read"):
        load_file("a\0b")
    (tmp_path / "file").write_text("a: 1")
    with pytest.raises(AuditorError, match="cannot be read"):
        load_file(tmp_path / "file" / "below")
