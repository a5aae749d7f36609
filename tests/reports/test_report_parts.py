"""Parts of reports: advice, bounds, guarantees, reading, comparison."""

import json

import pytest
import report_cases

import auditor
from auditor import registry
from auditor.results.comparison import compare_results
from auditor.results.model import SchemeSummary
from auditor.results.records import ExpectationRecord, Remedy, pooled
from auditor_reports.changes import _blocks, headline, parts
from auditor_reports.data_files import Json
from auditor_reports.figures import Z95, Figure, number, plus_minus
from auditor_reports.headline import remedy_text
from auditor_reports.pages import Html, Markdown
from auditor_reports.reading import GAIN, Reading
from auditor_reports.terminal import Terminal
from auditor_reports.verdict import Verdict, verdicts
from tests.audited import record


def of(value, half=None, coalition=(1,)):
    low, high = (None, None) if half is None else (value - half, value + half)
    return Figure(value, low, high, None, coalition, (), "closed-form", 1)


@pytest.mark.parametrize(("value", "half", "text"), [
    (0.08333, 0.00118, "0.0833 ±0.0012"), (0.2, 1e-9, "0.2000 ±<0.0001"),
    (3e-17, 1e-18, "3×10⁻¹⁷"), (0.0, None, "0"), (15234.7, 120.0, "15,230 ±120"),
    (1285407536.0, None, "1.285×10⁹"), (-0.012, 0.004, "−0.012 ±0.004"),
])  # fmt: skip
def test_a_figure_is_written_to_the_precision_of_its_error_bar(value, half, text):
    assert f"{number(value, half)} {plus_minus(half, value)}".strip() == text


def test_a_gain_over_replicates_is_that_of_the_results():
    gain = {"metric": "collusion_gain", "coalition": (1, 2)}
    gains = [record(0.5 + each / 100, 0.02, replicate=each, **gain) for each in range(1, 7)]
    errors = [
        record(value, 0.02, replicate=each, coalition=held)
        for each in range(1, 7)
        for held, value in (((1, 2), 0.5 + each / 10), ((1,), 1.0))
    ]
    reading = Reading(report_cases.audited([*gains, *errors]))
    (found,) = [reading.figures(one, "collusion_gain") for one in reading.settings(GAIN)]
    assert found[1, 2].value == pytest.approx(pooled(gains)[0])
    assert found[1, 2].half == pytest.approx(Z95 * pooled(gains)[1])


def test_verdicts_of_the_four_schemes(quickstart):
    found = {item.scheme: item for item in verdicts(Reading(quickstart))}
    assert {scheme: item.finding for scheme, item in found.items()} == {
        "independent": "gain", "correlated": "gain", "linearly-dependent": "exact", "corner-wave": "no-gain",
    }  # fmt: skip
    assert "all five copies" in found["correlated"].sentence
    assert found["correlated"].worst is not None
    assert f"{100 * found['correlated'].worst.value:.1f}" in found["correlated"].sentence
    assert "26 coalitions" in found["corner-wave"].sentence


def with_gains(result, error, **updates):
    """The corner-wave release with wide, or no, error bars of the gain."""

    def widen(record):
        if record.metric != "collusion_gain":
            return record
        low, high = (None, None) if error is None else (record.value - error, record.value + error)
        return record._replace(
            std_error=None if error is None else error / 1.96, ci_low=low, ci_high=high
        )

    measurements = [widen(record) for record in result.measurements]
    return Reading(
        result.model_copy(update={"measurements": measurements, "expectations": [], **updates})
    )


@pytest.mark.parametrize("error", [0.05, None])
def test_wide_or_missing_error_bars_are_undecided_and_said_so(quickstart, error):
    found = Verdict(with_gains(quickstart, error), "corner-wave")
    assert found.finding == "undecided"
    assert found.sentence.startswith("Undecided whether pooling helps")


@pytest.mark.parametrize(
    ("status", "error", "finding"),
    [("fails", 0.001, "refuted"), ("undecided", 0.001, "undecided"), ("holds", 0.05, "no-gain")],
)
def test_the_verdict_never_contradicts_an_expectation(quickstart, status, error, finding):
    record = ExpectationRecord(
        expectation="theorem-4", where={"scheme": "corner-wave"}, status=status, observed=None,
        bound=None, why="",
    )  # fmt: skip
    found = Verdict(with_gains(quickstart, error, expectations=[record]), "corner-wave")
    assert found.finding == finding
    if finding != "no-gain":
        assert "expectation theorem-4" in found.sentence


@pytest.mark.parametrize("width", [80])
def test_a_terminal_has_the_release_first_and_everything_in_its_width(advice, width):
    text = Terminal(width=width).render_advice(advice)
    lines = text.splitlines()
    assert lines[1] == "✓ corner-wave at 1.21, 2.42, 4.84 leaves 50 % or more unknown"
    assert "\x1b" not in text
    assert all(len(line) <= width for line in lines if "auditor perturb" not in line)
    whole = " ".join(text.split())
    for words in (
        "52.0 ± 1.2 %", "49.0 ± 1.2 %", "✗ missed", "? open",
        "distinguish is 1, 2, 4, by a factor of 1.2 in σ². It", "not measured: it would", "×3,001",
        "19 %",
    ):  # fmt: skip
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
    sentence = "Use s at levels of at least 1, which would leave half of age unknown"
    assert released(levels=[1.0]) == f"{sentence} (llse, closed form)."
    assert "(estimate)" in released(levels=[1.0], estimated=True)
    assert "; or use corner-wave at levels of at least 1.1" in released(levels=[1.5], lossless=1.1)
    assert "Instead of s use corner-wave at levels of at least 1: " in released(lossless=1.0)
    assert "Perturb or leave out the columns that s shows" in released(attack="fitted-to-originals")
    assert "retention of at most 0.7, 0.6, which would leave half of all attributes" in released(
        levels=[0.7, 0.6], attribute="*", kind="retention"
    )


@pytest.fixture(scope="module")
def bounded():
    return auditor.run({
        "seed": 4, "data": {"source": "gaussian", "rows": 400, "covariance": [[4.0, 0.0], [0.0, 4.0]], "exact": True},
        "schemes": [{"name": "independent", "id": "a<b>", "levels": [1.0, 3.0], "noise": {"variance": 4.0}}, {"name": "rotation"}],
        "knowledge": ["perfect", {"known-attributes": ["x1"]}], "coalitions": ["singles", "all"],
        "attacks": ["llse", "spectral-filter", "partial-disclosure"], "measures": ["error-bounds"],
    })  # fmt: skip


@pytest.mark.parametrize("form", ["table", "markdown", "html"])
def test_every_report_says_so(bounded, quickstart, form):
    renderer = registry.get("renderer", form)()
    said = " ".join(renderer.render([bounded]).split()).replace("\u00a0", " ")
    sentence = "Proved: from copies alone, no attack leaves less of the variance unknown on average than 42.9 %"
    assert sentence in said
    assert "42.9 % from both copies" in said
    assert "error_ceiling" in said.replace("\\", "")  # by a theorem on one attack
    assert form != "html" or "a<b>" not in said.replace("<bdi>", "")
    assert "Proved:" not in renderer.render([quickstart])


def shifted(result, scheme, factor, metric="normalized_error"):
    def change(record):
        if (record.scheme, record.metric) != (scheme, metric) or record.value is None:
            return record
        return record._replace(value=record.value * factor)

    return result.model_copy(
        update={"measurements": [change(record) for record in result.measurements]}
    )


@pytest.fixture(scope="module")
def worse(quickstart):
    return compare_results(quickstart, shifted(quickstart, "correlated", 0.8))


def test_the_same_audit_twice_differs_in_nothing(quickstart):
    same = compare_results(quickstart, quickstart)
    assert not same.worse
    assert parts(same) == []
    assert headline(same) == "Nothing got worse."


def test_lower_errors_are_worse_and_higher_ones_better(quickstart, worse):
    assert worse.worse
    assert {change.metric for change in worse.worsened} == {"normalized_error"}
    back = compare_results(shifted(quickstart, "correlated", 0.8), quickstart)
    assert not back.worse
    assert len(back.improved) == len(worse.worsened)


@pytest.mark.parametrize(("factor", "worse"), [(0.8, True), (1.2, False)])
def test_what_was_not_tried_before_and_knows_more_is_worse(quickstart, factor, worse):
    added = [record._replace(attack="joint", value=record.value * factor, theory=None)
             for record in quickstart.measurements
             if (record.scheme, record.attack, record.knowledge, record.metric) == ("corner-wave", "llse", "perfect", "normalized_error")
             and record.value is not None]  # fmt: skip
    found = compare_results(
        quickstart,
        quickstart.model_copy(update={"measurements": [*quickstart.measurements, *added]}),
    )
    assert (found.worse, found.exposed) == (worse, int(worse))
    if worse:
        said = "1 thing got worse: 1 scheme is more exposed, to an attack that was not tried."
        assert headline(found) == said
        assert "corner-wave, joint, perfect" in found.broken[-1]


def changed(result, scheme, **fields):
    records = [
        r._replace(**fields) if r.scheme == scheme and r.status == "ok" else r
        for r in result.measurements
    ]
    return result.model_copy(update={"measurements": records})


def test_cells_that_fail_now_are_worse_and_told_once_for_each_adversary_with_the_reason(quickstart):
    lost = compare_results(
        quickstart,
        changed(quickstart, "corner-wave", status="failed", value=None, reason="LinAlgError"),
    )
    cells = sum(lost.lost.values())
    assert lost.worse
    assert len(lost.broken) == len(lost.lost) == 4
    said = f"corner-wave, ndr, perfect: now failed (LinAlgError): {cells // 4} cells are no longer measured"
    assert lost.broken[0] == said
    assert headline(lost) == f"{cells} things got worse: {cells} cells are no longer measured."
    (part,) = parts(lost)
    assert part.size == cells


@pytest.mark.parametrize("width", [60, 160])
def test_every_format_says_the_same(worse, width):
    (part,) = parts(worse)
    *_, table = _blocks(part)
    text = Terminal(width=width).render_comparison(worse)
    assert max(map(len, text.splitlines())) <= width
    for document in (text, Markdown().render_comparison(worse), Html().render_comparison(worse)):
        assert headline(worse) in document
        assert all(cell in document for cell in table.rows[0].cells[:2])
    shown = json.loads(Json().render_comparison(worse))
    assert shown["worse"] is True
    assert len(shown["worsened"]) == part.size


def test_hostile_names_stay_text(hostile):
    changed = compare_results(hostile, shifted(hostile, hostile.releases[0].scheme, 0.5))
    page, text = Html().render_comparison(changed), Markdown().render_comparison(changed)
    assert page.count("<script") == 1
    assert "<img" not in page
    assert "<script" not in text
    assert report_cases.HOSTILE_TITLE not in page
    assert "\u202e" not in Terminal(width=80).render_comparison(changed)
