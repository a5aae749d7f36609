import pytest

from auditor.results.model import SchemeSummary
from auditor.results.records import Remedy
from auditor_reports.html import Html
from auditor_reports.markdown import Markdown
from auditor_reports.terminal import Terminal
from auditor_reports.wording.headline import remedy_text


@pytest.mark.parametrize("width", [80])
def test_a_terminal_has_the_release_first_and_everything_in_its_width(advice, width):
    text = Terminal(width=width).render_advice(advice)
    lines = text.splitlines()
    assert lines[1] == "✓ corner-wave at 1.21, 2.42, 4.84 leaves 50 % or more unknown"
    assert "\x1b" not in text
    assert all(len(line) <= width for line in lines if "auditor perturb" not in line)
    whole = " ".join(text.split())
    for words in (
        "52.0 ± 1.2 %",
        "49.0 ± 1.2 %",
        "✗ missed",
        "? open",
        "distinguish is 1, 2, 4, by a factor of 1.2 in σ². It",
        "not measured: it would",
        "×3,001",
        "19 %",
    ):
        assert words in whole


def test_markdown_and_the_page_say_what_the_terminal_says(advice):
    text, page = (
        Markdown().render_advice(advice),
        Html().render_advice(advice).replace("\u202f", " ").replace("\xa0", " "),
    )
    for words in (
        "corner-wave at 1.21, 2.42, 4.84 leaves 50 % or more unknown",
        "adds nothing to the least perturbed copy",
    ):
        assert words in text
        assert words in page
    assert "<b>" not in text
    assert "<b>pay" not in page
    assert advice.command in page
    assert 'id="advice-frontier"' in page


def released(**remedy):
    base = {"attack": "llse", "attribute": "age", "unknown": 0.05} | remedy
    return remedy_text(
        SchemeSummary(sweep={}, scheme="s", plugin="s", levels=[0.1], summary="", claims=""),
        Remedy.model_validate(base),
    )


def test_a_remedy_in_words():
    assert (
        released(levels=[1.0])
        == "s at levels of at least 1 would leave half of age unknown (llse, closed form)."
    )
    assert "(estimate)" in released(levels=[1.0], estimated=True)
    assert "; or corner-wave at levels of at least 1.1, which pooling does not weaken" in released(
        levels=[1.5], lossless=1.1
    )
    assert "no level is known to help; corner-wave at levels of at least 1" in released(
        lossless=1.0
    )
    assert "retention of at most 0.7, 0.6 would leave half of the categories" in released(
        levels=[0.7, 0.6], attribute="*", kind="retention"
    )
