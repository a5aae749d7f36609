"""Tables for papers."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor_reports.latex import Latex, safe

WORDS = "textbackslash textasciicircum textasciitilde textless textgreater textbar textsuperscript textsubscript dots"
SIGNS = "ll gg pm cdot surd le ge ne approx propto to Vert int otimes ell times star diamond"
ESCAPED = re.compile(
    rf"\\(?:{'|'.join(WORDS.split())})(?![a-z])|\\[{{}}$&#%_]|\$\\(?:{'|'.join(SIGNS.split())})\$|\$-\$|\$\\(?:hat|bar)\{{[A-Za-z]\}}\$"
    r"|\$\\[A-Za-z]+\$"
)


def markup(text: str) -> set[str]:
    return set(ESCAPED.sub("", text)) & set("\\$&#%_^~")


@pytest.mark.parametrize(("written", "spelt"), [(r"\input{x}", r"\textbackslash{}input\{x\}"), ("a_b & 5 % of $x^2 ~ #1", r"a\_b \& 5 \% of \$x\textasciicircum{}2 \textasciitilde{} \#1"), ("--x, ,,", "{-}-x, {,},"), ("σ² = 10⁻⁷ ± ½", r"$\sigma$\textsuperscript{2} = 10\textsuperscript{$-$7} $\pm$ 1/2"), ("Größe\n%", r"Größe \%")])  # fmt: skip
def test_text_is_spelt_as_tex_sets_it(written: str, spelt: str) -> None:
    assert safe(written) == spelt


@given(st.text(st.sampled_from("\\{}$&#^_~%<>|\"'`[]*-,a0 σΣς²⁻₂Ῥἀ\u0302\n\x1b\u202e")))
def test_nothing_in_a_name_is_read_as_markup(text: str) -> None:
    spelt = safe(text)
    assert not markup(spelt), spelt
    plain = re.sub(r"\\[{}]", "", spelt)
    assert plain.count("{") == plain.count("}")
    assert spelt.isprintable()


def tables(text: str) -> list[str]:
    return re.findall(r"\\begin\{table\}.*?\\end\{table\}", text, re.DOTALL)


@pytest.mark.parametrize("case", ["swept", "hostile"])
@pytest.mark.slow_after_first
def test_every_row_has_as_many_cells_as_the_table_has_columns(
    case: str, request: pytest.FixtureRequest
) -> None:
    found = tables(Latex().render([request.getfixturevalue(case)]))
    assert len(found) >= 4
    for table in found:
        columns = re.search(r"\\begin\{tabular\}\{@\{\}(.*)@\{\}\}", table)
        assert columns is not None
        many = len(re.sub(r"p\{[^}]*\}", "l", columns[1]))
        lines = [line for line in table.splitlines() if line.endswith(r"\\")]
        assert [len(re.findall(r"(?<!\\)&", line)) + 1 for line in lines] == [many] * len(lines)
        for line in lines:
            assert not markup(re.sub(r"(?<!\\)&|\\\\$", "", line)), line
        for part in (r"\toprule", r"\midrule", r"\bottomrule", r"\caption{", r"\label{tab:"):
            assert table.count(part) == 1
