"""The strongest attack of each kind stands in every report that has two kinds, and what was not tried is told by kind."""

from __future__ import annotations

from typing import Any

import pytest

import auditor
from auditor import registry
from auditor.results.model import AuditResult
from auditor.results.records import Measurement
from auditor_reports.figures.gaps import limited_text, untried_text
from auditor_reports.figures.kinds import strongest_by_kind, untried_kinds
from auditor_reports.figures.reading import Reading

KINDS = {
    "llse": "linear",
    "ndr": "linear",
    "shapes": "joint",
    "linker": "naming",
    "row by row": "serial",
    "guess": "joint",
}
HALF = 0.004


def contest(
    quickstart: AuditResult,
    figures: dict[tuple[str, tuple[int, ...], str, str], float],
    **changes: Any,
) -> AuditResult:
    """One scheme and these figures, by attack, coalition, metric and attribute."""
    first = next(
        r for r in quickstart.measurements if r.metric == "normalized_error" and r.attribute == "*"
    )

    def record(
        attack: str, coalition: tuple[int, ...], metric: str, attribute: str, value: float
    ) -> Measurement:
        interval = {
            "std_error": HALF / 1.96,
            "ci_low": value - HALF,
            "ci_high": value + HALF,
            "theory": 0.2 if attack == "llse" else None,
        }
        return first._replace(
            attack=attack, coalition=coalition, levels=(1.0,) * len(coalition), metric=metric, attribute=attribute, value=value, replicate=1,
            **interval,
        )  # fmt: skip

    used = list(dict.fromkeys(attack for attack, *_ in figures))
    some = next(p for p in quickstart.plugins if p.kind == "attack")
    plugins = [some.model_copy(update={"id": name, "name": name}) for name in used]
    update = {
        "measurements": [record(*cell, value) for cell, value in figures.items()], "distributions": [], "expectations": [],
        "releases": quickstart.releases[:1], "plugins": plugins, "attack_kinds": KINDS, "untried": [],
    }  # fmt: skip
    return quickstart.model_copy(update=update | changes)


def errors(
    attack: str, coalition: tuple[int, ...], whole: float, **attributes: float
) -> dict[tuple[str, tuple[int, ...], str, str], float]:
    return {
        (attack, coalition, "normalized_error", name): value
        for name, value in {"*": whole, **attributes}.items()
    }


FIGURES = {
    **errors("ndr", (1, 2), 0.4, age=0.4, salary=0.4), **errors("llse", (1,), 0.15, age=0.1, salary=0.2),
    **errors("llse", (1, 2), 0.2, age=0.25, salary=0.15), **errors("shapes", (1, 2), 0.1, age=0.06, salary=0.14),
    ("linker", (1, 2), "named", "*"): 0.43, **errors("linker", (1, 2), 0.2),
}  # fmt: skip


def test_of_each_kind_the_least_that_the_largest_coalition_leaves_and_the_attribute_rebuilt_best(
    quickstart: AuditResult,
) -> None:
    linear, joint, naming = strongest_by_kind(Reading(contest(quickstart, FIGURES)))
    assert (linear.kind, linear.setting.attack, linear.shown.coalition, linear.shown.value) == (
        "linear",
        "llse",
        (1, 2),
        0.2,
    )
    assert linear.exposed is not None
    assert (linear.exposed[0], linear.exposed[1].value, linear.shown.theory) == (
        "salary",
        0.15,
        0.2,
    )
    assert (joint.setting.attack, joint.exposed and joint.exposed[0]) == ("shapes", "age")
    # whoever names rows is measured by the rows, though it hands back estimates, too
    assert (naming.kind, naming.shown.value, naming.found) == ("naming", 0.43, "of rows named")


def test_one_kind_alone_makes_no_table_nor_do_results_that_do_not_say_the_kinds(
    quickstart: AuditResult,
) -> None:
    alone = {cell: value for cell, value in FIGURES.items() if cell[0] in ("ndr", "llse")}
    assert strongest_by_kind(Reading(contest(quickstart, alone))) == []
    assert strongest_by_kind(Reading(contest(quickstart, FIGURES, attack_kinds={}))) == []


def test_of_several_coalitions_as_large_the_one_that_leaves_least_speaks(
    quickstart: AuditResult,
) -> None:
    some = {
        **errors("llse", (1, 2), 0.2),
        **errors("llse", (1, 3), 0.18),
        **errors("shapes", (2, 3), 0.1),
    }
    assert strongest_by_kind(Reading(contest(quickstart, some)))[0].shown.coalition == (1, 3)


@pytest.mark.parametrize("form", ["table", "markdown", "html"])
def test_every_report_has_the_table(quickstart: AuditResult, form: str) -> None:
    # or a figure may be broken at its bar
    renderer = registry.get("renderer", form)(**({"width": 120} if form == "table" else {}))
    shown = " ".join(renderer.render([contest(quickstart, FIGURES)]).split())
    assert "The strongest attack of each kind" in shown
    assert "43.0 ± 0.4 %" in shown.replace("\u00a0", " ")
    _, _, after = shown.partition("The strongest attack of each kind")
    assert after.index("linear") < after.index("joint") < after.index("naming")


def test_guesses_of_categories_are_told_as_the_share_that_is_right() -> None:
    result = auditor.run({
        "seed": 1, "data": {"source": "markov-chain", "values": 5, "stay": 0.95, "rows": 1500, "categorical": ["state"]},
        "schemes": [{"name": "uniform-multilevel", "levels": [0.4]}], "attacks": ["posterior", "serial-posterior"],
    })  # fmt: skip
    found = strongest_by_kind(Reading(result))
    assert [(one.kind, one.found) for one in found] == [
        ("joint", "guessed right"),
        ("serial", "guessed right"),
    ]
    assert found[1].shown.value > found[0].shown.value + 0.1
    assert found[0].shown.theory is not None


def test_kinds_that_no_attack_tried_come_first_and_others_are_counted(
    quickstart: AuditResult,
) -> None:
    left_out = contest(
        quickstart, errors("llse", (1,), 0.2), untried=["ndr", "shapes", "row by row", "guess"]
    )
    assert untried_kinds(left_out) == (
        {"joint": ["shapes", "guess"], "serial": ["row by row"]},
        ["ndr"],
    )
    text = " ".join(registry.get("renderer", "markdown")().render([left_out]).split())
    assert "Not tried: joint, serial; nor 1 more attack of kinds that were." in text
    assert "joint: shapes, guess" in text


def test_what_was_not_tried_is_one_sentence() -> None:
    assert untried_text({}, []) == ""
    assert (
        untried_text({"serial": ["a"]}, [])
        == "Not tried: serial. `attacks: all` tries every attack that applies."
    )
    assert untried_text({}, ["a", "b"]).startswith(
        "Every kind of attack was tried; 2 more attacks apply."
    )


def test_attacks_tried_on_some_coalitions_only_are_told_with_these() -> None:
    some = {"name": "shapes", "coalitions": ["singles", "all"]}
    attacks = [
        "ndr",
        {"id": "llse"},
        {**some, "id": "all at once"},
        some,
        {"id": "own", "coalitions": [{"copies": [1, 3]}]},
    ]
    assert limited_text(attacks) == (
        "Tried on some coalitions only (singles, all): all at once, shapes. Tried on some coalitions only (a choice of its own): own."
    )
    for nothing in (["ndr"], [3, None, {"coalitions": 4}], {"name": "ndr"}, 5, None):
        assert limited_text(nothing) == ""  # type: ignore[arg-type]
