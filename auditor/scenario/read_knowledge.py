"""Section ``knowledge``: the adversary's knowledge, from YAML or Python."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from typing import Any

from auditor.adversary.knowledge import (
    EXPECTED,
    KINDS,
    Estimated,
    Knowledge,
    KnownAttributes,
    KnownRecords,
    Leaf,
    Perfect,
    PublishedModel,
    PublishedRules,
    Regression,
    Rule,
    Split,
    Tree,
    UniformPrior,
)
from auditor.errors import did_you_mean
from auditor.field_paths import Path, format_path
from auditor.parameters import is_number, is_whole, shown, whole
from auditor.scenario.fields import split
from auditor.scenario.problems import Problems


def read_knowledge(fields: dict[str, Any], problems: Problems) -> tuple[Knowledge, ...]:
    """Return the section ``knowledge`` without invalid entries; report errors."""
    found: list[Knowledge | None] = []
    for place, item in enumerate(
        problems.sequence(("knowledge",), fields.get("knowledge", ["perfect"]))
    ):
        try:
            found.append(parse_knowledge(item))
        except KnowledgeError as error:
            found.append(None)
            for path, message in error.problems:
                problems.add(
                    ("knowledge", place, *path),
                    message,
                    key=message.startswith("is not a known field"),
                )
    problems.unique(
        ("knowledge",),
        [None if knowledge is None else knowledge.label for knowledge in found],
        "knowledge",
    )
    return tuple(knowledge for knowledge in found if knowledge is not None)


class KnowledgeError(ValueError):
    """Invalid knowledge; ``problems`` has relative places and messages."""

    def __init__(self, problems: Iterable[tuple[Path, str]]) -> None:
        self.problems = tuple(problems)
        super().__init__(
            "; ".join(f"{format_path(path)} {message}".lstrip() for path, message in self.problems)
        )


def parse_knowledge(value: Any) -> Knowledge:
    """Parse a state of knowledge from a scenario or a Python call.

    Raises
    ------
    KnowledgeError
        Invalid knowledge, with the place and the expected form.
    """
    if isinstance(value, Knowledge):
        return value
    name, argument = split(value)
    if name not in KINDS:
        hint = did_you_mean(name, KINDS) if isinstance(name, str) else ""
        raise KnowledgeError([((), f"must be one of {EXPECTED}; got {shown(value)}{hint}")])
    if name in (Perfect.name, UniformPrior.name):
        if argument is not None:
            raise KnowledgeError([((name,), f"takes no parameters; got {shown(argument)}")])
        return Perfect() if name == Perfect.name else UniformPrior()
    # {name: known-records, count: 10} equals {known-records: 10}
    path: Path = () if isinstance(value, dict) and "name" in value else (name,)
    if name == Estimated.name:
        return _parse_estimated(argument, path)
    if name == PublishedRules.name:
        return parse_rules(argument, path)
    if name == PublishedModel.name:
        return parse_model(argument, path)
    kind = KINDS[name]
    if isinstance(argument, dict) and len(argument) == 1 and not path:
        argument = next(iter(argument.values()))
    argument = whole(argument)
    if kind is KnownAttributes:
        return _parse_known_attributes(argument, path)
    if not is_whole(argument, 1):
        raise KnowledgeError(
            [(path, f"must be a number of records, at least 1; got {shown(argument)}")]
        )
    assert issubclass(kind, KnownRecords)
    return kind(argument)


def _parse_estimated(argument: Any, path: Path) -> Estimated:
    if not isinstance(argument, dict):
        raise KnowledgeError([(path, f"must be {{rows: r}}; got {shown(argument)}")])
    rows, structure = whole(argument.get("rows")), argument.get("structure", "scheme")
    wrong = _unknown(argument, ("rows", "structure"), path)
    if "rows" not in argument and not wrong:
        wrong.append((path, "must be {rows: r}; rows is required"))
    if "rows" in argument and not is_whole(rows, 2):
        wrong.append(
            ((*path, "rows"), f"must be a number of released rows, at least 2; got {shown(rows)}")
        )
    if structure not in ("scheme", "none"):
        wrong.append(((*path, "structure"), f"must be scheme or none; got {shown(structure)}"))
    if wrong:
        raise KnowledgeError(wrong)
    return Estimated(int(rows), structure)


MODEL_FIELDS = (
    "target",
    "predictors",
    "rows",
    "known",
    "coefficients",
    "intercept",
    "residual-variance",
    "depth",
    "tree",
)


def parse_model(argument: Any, path: Path) -> PublishedModel:
    """Parse a published regression or tree, with figures or to be fitted.

    Raises
    ------
    KnowledgeError
        Invalid knowledge, with the place and the expected form.
    """
    if not isinstance(argument, dict):
        raise KnowledgeError(
            [
                (
                    path,
                    f"must be {{target: name, predictors: [names], rows: r}}; got {shown(argument)}",
                )
            ]
        )
    wrong = _unknown(argument, MODEL_FIELDS, path)
    target, on, rows, known = (
        argument.get("target"),
        argument.get("predictors"),
        whole(argument.get("rows")),
        argument.get("known", False),
    )
    stated = {"coefficients", "intercept", "residual-variance"} & argument.keys()
    needed = ("target", "rows", *(() if stated or "tree" in argument else ("predictors",)))
    wrong += [((*path, key), "is required") for key in needed if key not in argument]
    figures: Regression | None = None
    tree: Split | Leaf | None = None
    depth = whole(argument.get("depth"))
    if "tree" in argument:
        wrong += [
            ((*path, key), "cannot stand beside a tree that is stated; leave it out")
            for key in (*sorted(stated), "predictors", "depth")
            if key in argument
        ]
        tree = _parse_regression_tree(argument["tree"], (*path, "tree"), wrong)
        on, stated = list(predictors_of(tree)), set()
        if target in on:
            wrong.append(((*path, "tree"), f"splits on the target, {shown(target)}"))
            on.remove(target)
        if known is True and isinstance(tree, Leaf):
            wrong.append(((*path, "known"), "has nothing to give: the tree has no predictors"))
    elif "depth" in argument and stated:
        wrong.append(
            (
                (*path, "depth"),
                "is of a tree, which has no coefficients; leave out the one or the other",
            )
        )
    elif "depth" in argument and not is_whole(depth, 1, MOST_SPLITS):
        wrong.append(
            (
                (*path, "depth"),
                f"must be a number of splits, 1 to {MOST_SPLITS}; got {shown(depth)}",
            )
        )
    if stated and "predictors" in argument:
        wrong.append(
            ((*path, "predictors"), "is said by the coefficients that are stated; leave it out")
        )
    elif stated:
        on, figures = _parse_figures(argument, path, wrong)
    on = [on] if isinstance(on, str) else on
    if "target" in argument and not isinstance(target, str):
        wrong.append(((*path, "target"), f"must be a column name; got {shown(target)}"))
    if (
        "predictors" in argument
        and not stated
        and not (isinstance(on, list) and on and all(isinstance(name, str) for name in on))
    ):
        wrong.append(((*path, "predictors"), f"must be a list of column names; got {shown(on)}"))
    elif isinstance(on, list) and (len(set(on)) < len(on) or target in on):
        twice = "the target" if target in on else "a column twice"
        wrong.append(
            ((*path, "coefficients" if stated else "predictors"), f"names {twice}; got {shown(on)}")
        )
    if "rows" in argument and not is_whole(rows, 2):
        wrong.append(
            ((*path, "rows"), f"must be a number of released rows, at least 2; got {shown(rows)}")
        )
    if not isinstance(known, bool):
        wrong.append(((*path, "known"), f"must be true or false; got {shown(known)}"))
    if wrong:
        raise KnowledgeError(wrong)
    return PublishedModel(
        int(rows),
        target=str(target),
        on=tuple(map(str, on or ())),
        known=known,
        regression=figures,
        depth=depth,
        tree=tree,
    )


def _parse_figures(
    argument: dict[str, Any], path: Path, wrong: list[tuple[Path, str]]
) -> tuple[list[str], Regression | None]:
    before, coefficients = len(wrong), argument.get("coefficients")
    if not isinstance(coefficients, dict) or not coefficients:
        wrong.append(
            ((*path, "coefficients"), f"must be {{column: number}}; got {shown(coefficients)}")
        )
        coefficients = {}
    figures: dict[Path, Any] = {
        ("coefficients", name): value for name, value in coefficients.items()
    }
    figures |= {(key,): argument.get(key) for key in ("intercept", "residual-variance")}
    for place, value in figures.items():
        if not _is_number(value):
            wrong.append(((*path, *place), f"must be a number; got {shown(value)}"))
        elif place == ("residual-variance",) and value < 0:
            wrong.append(((*path, *place), f"must be at least 0; got {shown(value)}"))
    *b, intercept, variance = figures.values()
    return list(coefficients), None if len(wrong) > before else Regression(
        tuple(map(float, b)), float(intercept), float(variance)
    )


MOST_SPLITS = 8
"""Largest depth: 256 leaves, each with a law of its own."""


def predictors_of(node: Split | Leaf | None) -> dict[str, None]:
    """Return the attributes of a tree's splits, in order of first use."""
    return (
        {node.on: None} | predictors_of(node.below) | predictors_of(node.above)
        if isinstance(node, Split)
        else {}
    )


def leaves_of(node: Split | Leaf) -> list[Leaf]:
    """Return a tree's leaves, ``below`` before ``above``."""
    return leaves_of(node.below) + leaves_of(node.above) if isinstance(node, Split) else [node]


def _parse_regression_tree(
    tree: Any, path: Path, wrong: list[tuple[Path, str]]
) -> Split | Leaf | None:
    before = len(wrong)
    found = _parse_node(tree, path, {}, wrong)
    if found is None or len(wrong) > before:
        return None
    shares = [leaf.share for leaf in leaves_of(found)]
    stated = [share for share in shares if share is not None]
    if stated and len(stated) < len(shares):
        wrong.append(
            (
                path,
                f"must state the share of every leaf or of none; {len(stated)} of {len(shares)} have one",
            )
        )
    elif stated and abs(sum(stated) - 1.0) > SHARES_OFF:
        wrong.append((path, f"must have shares that sum to 1; got {sum(stated):g}"))
    return found if len(wrong) == before else None


SHARES_OFF = 0.01
"""Tolerance for the sum of rounded shares."""


Within = dict[str, tuple[float, float]]
"""Bounds by attribute from the splits above a node."""


def _parse_node(
    node: Any, path: Path, within: Within, wrong: list[tuple[Path, str]]
) -> Split | Leaf | None:
    if not isinstance(node, dict) or not node:
        wrong.append(
            (
                path,
                f"must be {{split: column, at: number, below: …, above: …}} or {{mean: m, variance: v}}; got {shown(node)}",
            )
        )
        return None
    split = ("split", "at", "below", "above")
    if not node.keys() & set(split):
        return _parse_leaf(node, path, wrong)
    before = len(wrong)
    _note_fields(node, split, split, path, wrong)
    if "split" in node and not isinstance(node["split"], str):
        wrong.append(((*path, "split"), f"must be a column name; got {shown(node['split'])}"))
    below = above = within
    if len(wrong) == before:
        on, at = node["split"], float(node["at"])
        low, high = within.get(on, (-math.inf, math.inf))
        if not low < at < high:
            wrong.append(
                (
                    (*path, "at"),
                    f"must be above {low:g} and below {high:g}, as the splits above it are; got {at:g}",
                )
            )
        below, above = within | {on: (low, min(at, high))}, within | {on: (max(at, low), high)}
    sides = [
        _parse_node(node[side], (*path, side), there, wrong)
        for side, there in (("below", below), ("above", above))
        if side in node
    ]
    parts = [part for part in sides if part is not None]
    return Split(node["split"], float(node["at"]), *parts) if len(wrong) == before else None


def _parse_leaf(node: dict[str, Any], path: Path, wrong: list[tuple[Path, str]]) -> Leaf | None:
    before = len(wrong)
    _note_fields(node, ("mean", "variance", "share"), ("mean", "variance"), path, wrong)
    if len(wrong) == before and node["variance"] < 0:
        wrong.append(((*path, "variance"), f"must be at least 0; got {shown(node['variance'])}"))
    if len(wrong) == before and not 0 < node.get("share", 1) <= 1:
        wrong.append(
            (
                (*path, "share"),
                f"must be a share, above 0 and at most 1; got {shown(node['share'])}",
            )
        )
    return (
        Leaf(**{key: float(value) for key, value in node.items()}) if len(wrong) == before else None
    )


def _note_fields(
    node: dict[str, Any],
    fields: tuple[str, ...],
    needed: tuple[str, ...],
    path: Path,
    wrong: list[tuple[Path, str]],
) -> None:
    unknown = _unknown(node, fields, path)
    wrong += unknown
    wrong += [((*path, key), "is required") for key in needed if key not in node and not unknown]
    for key in (
        key for key in ("at", "mean", "variance", "share") if key in fields and key in node
    ):
        if not _is_number(node[key]):
            wrong.append(((*path, key), f"must be a number; got {shown(node[key])}"))


def _unknown(node: dict[str, Any], fields: tuple[str, ...], path: Path) -> list[tuple[Path, str]]:
    return [
        ((*path, key), f"is not a known field{did_you_mean(key, fields)}")
        for key in node
        if key not in fields
    ]


def _is_number(value: Any) -> bool:
    return is_number(value) and abs(value) <= sys.float_info.max


def parse_rules(argument: Any, path: Path) -> PublishedRules:
    """Parse published margins, association rules and a tree.

    Raises
    ------
    KnowledgeError
        Invalid knowledge, with the place and the expected form.
    """
    fields = ("margins", "if-then", "known", "tree")
    if not isinstance(argument, dict):
        raise KnowledgeError(
            [
                (
                    path,
                    f"must be {{margins: [[names]]}}, {{if-then: [rules]}} or {{tree: {{…}}}}; got {shown(argument)}",
                )
            ]
        )
    wrong = _unknown(argument, fields, path)
    if not argument.keys() & {"margins", "if-then", "tree"}:
        wrong.append(
            (path, "must name what was published: margins, rules under if-then, or a tree")
        )
    margins, stated, known = (argument.get(key, []) for key in fields[:3])
    tree = _parse_tree(argument["tree"], (*path, "tree"), wrong) if "tree" in argument else None
    for key, value in (("margins", margins), ("if-then", stated)):
        if key in argument and not (isinstance(value, list) and value):
            wrong.append(((*path, key), f"must be a list of at least one; got {shown(value)}"))
    margins = (
        [[names] if isinstance(names, str) else names for names in margins]
        if isinstance(margins, list)
        else []
    )
    known = [known] if isinstance(known, str) else known
    named = [(("margins", place), names) for place, names in enumerate(margins)] + (
        [(("known",), known)] if "known" in argument else []
    )
    for place, names in named:
        if (
            not isinstance(names, list)
            or not names
            or not all(isinstance(name, str) for name in names)
            or len(set(names)) < len(names)
        ):
            wrong.append(
                (
                    (*path, *place),
                    f"must be a list of column names, none of them twice; got {shown(names)}",
                )
            )
    rules = [
        _parse_rule(rule, (*path, "if-then", place), wrong)
        for place, rule in enumerate(stated if isinstance(stated, list) else [])
    ]
    if wrong:
        raise KnowledgeError(wrong)
    return PublishedRules(
        tuple(map(tuple, margins)),
        tuple(rule for rule in rules if rule is not None),
        tree,
        tuple(known),
    )


def _parse_tree(tree: Any, path: Path, wrong: list[tuple[Path, str]]) -> Tree | None:
    before, fields = len(wrong), ("target", "predictors", "depth")
    if not isinstance(tree, dict):
        wrong.append(
            (path, f"must be {{target: name, predictors: [names], depth: d}}; got {shown(tree)}")
        )
        return None
    wrong += _unknown(tree, fields, path)
    wrong += [((*path, key), "is required") for key in fields if key not in tree]
    if len(wrong) > before:
        return None
    target, on, depth = tree["target"], tree["predictors"], whole(tree["depth"])
    on = [on] if isinstance(on, str) else on
    if not isinstance(target, str):
        wrong.append(((*path, "target"), f"must be a column name; got {shown(target)}"))
    if not isinstance(on, list) or not on or not all(isinstance(name, str) for name in on):
        wrong.append(((*path, "predictors"), f"must be a list of column names; got {shown(on)}"))
    elif len(set(on)) < len(on) or target in on:
        wrong.append(
            (
                (*path, "predictors"),
                f"names {'the target' if target in on else 'a column twice'}; got {shown(on)}",
            )
        )
    if not is_whole(depth, 1):
        wrong.append(
            ((*path, "depth"), f"must be a number of splits, at least 1; got {shown(depth)}")
        )
    return None if len(wrong) > before else Tree(target, tuple(on), depth)


def _parse_rule(rule: Any, path: Path, wrong: list[tuple[Path, str]]) -> Rule | None:
    before, fields = len(wrong), ("if", "then", "confidence", "support")
    if not isinstance(rule, dict):
        wrong.append(
            (path, f"must be {{if: {{column: value}}, then: {{column: value}}}}; got {shown(rule)}")
        )
        return None
    wrong += _unknown(rule, fields, path)
    when, then = rule.get("if", {}), rule.get("then", {})
    for key, part in (("if", when), ("then", then)):
        stated = isinstance(part, dict) and all(
            isinstance(value, str | int | float) for value in part.values()
        )
        if not stated or (key == "then" and not part):
            wrong.append(((*path, key), f"must be {{column: value}}; got {shown(part)}"))
    if len(wrong) > before:
        return None
    wrong += [((*path, "then", name), "stands under if, too") for name in then if name in when]
    confidence, support = (_share(rule, key, path, wrong) for key in ("confidence", "support"))
    if ("confidence" in rule) != ("support" in rule):
        missing = "support" if "confidence" in rule else "confidence"
        wrong.append(((*path, missing), "is required beside the other of confidence and support"))
    elif confidence is not None and support is not None and support > confidence:
        wrong.append(
            ((*path, "support"), f"must be at most the confidence, {confidence:g}; got {support:g}")
        )
    return (
        None
        if len(wrong) > before
        else Rule(tuple(when.items()), tuple(then.items()), confidence, support)
    )


def _share(
    rule: dict[str, Any], key: str, path: Path, wrong: list[tuple[Path, str]]
) -> float | None:
    value = rule.get(key)
    if key in rule and (not is_number(value) or not 0 < value <= 1):
        wrong.append(((*path, key), f"must be a share, above 0 and at most 1; got {shown(value)}"))
        return None
    return None if value is None else float(value)


def _parse_known_attributes(argument: Any, path: Path) -> KnownAttributes:
    names = [argument] if isinstance(argument, str) else argument
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise KnowledgeError([(path, f"must be a list of column names; got {shown(argument)}")])
    if len(set(names)) < len(names):
        raise KnowledgeError([(path, f"names a column twice; got {shown(argument)}")])
    return KnownAttributes(tuple(names))
