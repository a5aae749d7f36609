"""Rows of fidelity.yaml: statements of five papers and our evidence.

==========
===================================================================================================
``at``      places in the paper: ``Theorem 4``, ``Figure 2``, ``Equation 15``, ``Section 6.2``
``claim``   the paper's statement, in one plain sentence
``prints``  its printed numbers or formula
``lives``   files of this repository with the implementation
``measured`` figures of scenario runs (`Selector`), filled in by make_fidelity.py
``tests``   tests of statements that need a proof and no measurement
``page``    a page of docs/ that no scenario measures, with the command that writes it
``erratum`` the misprint and its correction
``todo``    reason for a missing measurement; a row needs ``todo``, ``measured``, ``tests`` or
``page``
==========
===================================================================================================
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
DECLARED = Path(__file__).resolve().parent / "fidelity.yaml"


@dataclass(frozen=True)
class Selector:
    """One figure, or one line of figures, of a scenario's results.

    It selects a ``metric``, an ``expectation`` by name, or a moment (``figure``: mean, variance,
    rows)
    of a ``column``. The other fields restrict measurements to a single cell. ``along`` names the
    field
    of a line: ``coalition`` by size, ``level`` of single copies, or a swept path (``only`` some
    values). ``of`` selects the ``largest`` or the ``smallest`` figure.
    """

    scenario: str
    label: str
    metric: str = ""
    expectation: str = ""
    column: str = ""
    figure: str = ""
    scheme: Any = None
    attack: Any = None
    knowledge: Any = None
    attribute: str = "*"
    coalition: Any = None
    sweep: dict[str, Any] = field(default_factory=dict)
    along: str = ""
    only: tuple[Any, ...] = ()
    of: str = ""

    @property
    def problem(self) -> str:
        """The selector's mistake; empty if it is valid."""
        if sum(map(bool, (self.metric, self.expectation, self.column))) != 1:
            return "must name one of metric, expectation and column"
        if self.of not in ("", "largest", "smallest"):
            return "of must be largest or smallest"
        if not self.label:
            return "must say in its label what is measured"
        return (
            ""
            if (ROOT / "scenarios" / f"{self.scenario}.yaml").is_file()
            else f"there is no scenario {self.scenario}"
        )


@dataclass(frozen=True)
class Row:
    """One statement of a paper."""

    paper: str
    at: tuple[str, ...]
    claim: str
    prints: str
    lives: tuple[str, ...]
    measured: tuple[Selector, ...] = ()
    tests: tuple[str, ...] = ()
    page: str = ""
    erratum: str = ""
    todo: str = ""

    @property
    def name(self) -> str:
        """The row's name in messages."""
        return f"{self.paper}, {'; '.join(self.at) or '?'}"

    @cached_property
    def problems(self) -> list[str]:
        """Missing fields, and links without a target."""
        found = [
            f"{needed} is empty"
            for needed in ("at", "claim", "prints", "lives")
            if not getattr(self, needed)
        ]
        if not (self.measured or self.tests or self.page or self.todo):
            found.append("nothing measures it, and no todo says why")
        found += [f"{path}: no such file" for path in self.lives if not (ROOT / path).exists()]
        if self.page and not (ROOT / "docs/evidence" / self.page).is_file():
            found.append(f"{self.page}: no such page")
        found += [f"{test}: no such test" for test in self.tests if not is_test(test)]
        found += [
            f"{selector.label or selector.scenario}: {selector.problem}"
            for selector in self.measured
            if selector.problem
        ]
        return [f"{self.name}: {problem}" for problem in found]


@dataclass(frozen=True)
class Paper:
    """A paper: title, prefixes of its scenarios, and all numbered items.

    Items are listed by hand from its text.
    """

    key: str
    title: str
    scenarios: str
    numbered: dict[str, tuple[str, ...]]
    rows: tuple[Row, ...]

    @property
    def problems(self) -> list[str]:
        """Items without a row, mistakes of rows, and unused scenarios."""
        covered = {place for row in self.rows for place in row.at}
        missing = [
            f"{self.key}, {kind} {number}: no row"
            for kind, numbers in self.numbered.items()
            for number in numbers
            if f"{kind} {number}" not in covered
        ]
        used = {selector.scenario for row in self.rows for selector in row.measured}
        shipped = (
            {path.stem for path in (ROOT / "scenarios").glob(f"{self.scenarios}*.yaml")}
            if self.scenarios
            else set()
        )
        unused = [
            f"{self.key}: no row is measured by the scenario {name}"
            for name in sorted(shipped - used)
        ]
        return [*missing, *unused, *(problem for row in self.rows for problem in row.problems)]


def is_test(node: str) -> bool:
    """Return whether ``file::name`` is a test of this repository."""
    file, _, name = node.partition("::")
    path = ROOT / file
    return (
        path.is_file()
        and re.search(rf"^def {re.escape(name)}\(", path.read_text(encoding="utf-8"), re.MULTILINE)
        is not None
    )


def papers(file: Path = DECLARED) -> list[Paper]:
    """Return the declared papers.

    Raises
    ------
    ValueError
        A row or a selector has an unknown field, or lacks one.
    """
    declared = yaml.safe_load(file.read_text(encoding="utf-8"))
    return [_paper(key, given) for key, given in declared.items()]


def _paper(key: str, given: dict[str, Any]) -> Paper:
    numbered = {kind: tuple(map(str, numbers)) for kind, numbers in given["numbered"].items()}
    return Paper(
        key,
        given["title"],
        given["scenarios"],
        numbered,
        tuple(_row(key, row) for row in given["rows"]),
    )


def _row(paper: str, given: dict[str, Any]) -> Row:
    row = {
        name: tuple(value) if isinstance(value, list) else str(value).strip()
        for name, value in given.items()
    }
    row["measured"] = tuple(
        _made(Selector, one, f"{paper}, {given.get('at')}") for one in given.get("measured", [])
    )
    made: Row = _made(
        Row,
        {"paper": paper, "at": (), "claim": "", "prints": "", "lives": (), **row},
        f"{paper}, {given.get('at')}",
    )
    return made


def _made(kind: Any, given: dict[str, Any], place: str) -> Any:
    unknown = set(given) - {each.name for each in fields(kind)}
    if unknown:
        raise ValueError(f"{place}: unknown {', '.join(sorted(unknown))}")
    values = {name: tuple(value) if name == "only" else value for name, value in given.items()}
    try:
        return kind(**values)
    except TypeError as error:
        raise ValueError(f"{place}: {error}") from None
