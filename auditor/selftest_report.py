"""Tables of the self-test, for terminal and Markdown."""

from __future__ import annotations

import io
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from auditor.results.records import Verdict
from auditor.selftest import VERDICTS, Counts, SelfTest, Tally, interval

Section = tuple[str, tuple[str, ...], list[tuple[str, ...]]]
"""Title, column heads and rows."""


def terminal(found: Sequence[SelfTest], width: int = 100, color: bool = False) -> str:
    """Return tables and summary for each size, for a terminal."""
    stream = io.StringIO()
    console = Console(
        file=stream, width=width, force_terminal=color, no_color=not color, highlight=False
    )
    for size in found:
        for title, head, rows in sections(size, about=False):
            table = Table(title=title, title_justify="left")
            for place, column in enumerate(head):
                table.add_column(column, overflow="fold", no_wrap=place == 0)
            for row in rows:
                table.add_row(*row)
            console.print(table)
        for line in summary(size):
            console.print(line)
    return stream.getvalue()


def markdown(found: Sequence[SelfTest], seconds: float) -> str:
    """Return a Markdown page with the command and its processor time."""
    sizes = " ".join(f"--rows {size.rows} --releases {size.releases}" for size in found)
    command = f"auditor selftest {sizes} --seed {found[0].seed} --format markdown"
    took = (
        f"{seconds / 60:.1f} processor minutes"
        if seconds >= 60
        else f"{seconds:.0f} processor seconds"
    )
    lines = [
        "# Self-test",
        "",
        f"Made by `{command}` in {took}. What the words mean stands in [the method](method.md).",
        "",
    ]
    lines += _page_table(_by_size(found))
    for size in found:
        for section in sections(size, about=size is found[0]):
            lines += _page_table(section)
        lines += [*(f"- {line}" for line in summary(size)), ""]
    return "\n".join(lines[:-1]) + "\n"


def _page_table(section: Section) -> list[str]:
    title, head, rows = section
    return [
        f"## {title}",
        "",
        *(f"| {' | '.join(cells)} |" for cells in (head, ("---",) * len(head), *rows)),
        "",
    ]


def _by_size(found: Sequence[SelfTest]) -> Section:
    names = list(dict.fromkeys(name for size in found for name in size.false_alarms()))
    rows = []
    for size in found:
        leaks, alarms = size.total(False), size.false_alarms()
        refuted = (share(alarms[name][0], "fails") if name in alarms else "–" for name in names)
        rows.append((f"{size.rows:,}", *(share(leaks, verdict) for verdict in VERDICTS), *refuted))
    head = (
        "rows",
        "leaks found",
        "undecided",
        "acquitted",
        *(f"honest releases refuted by {name}" for name in names),
    )
    return "By size, with exact 95 % intervals", head, rows


def sections(found: SelfTest, about: bool = True) -> list[Section]:
    """Return one table of leaks and one of honest releases, if any."""
    expectations = sorted({name for tally in found.cases for name in tally.by_expectation})
    spoken = [name.replace("-", " ") for name in expectations]  # narrow columns break at spaces
    tables: list[Section] = []
    leaks, sound = (
        ("Planted leaks", "leak", "found", "acquitted"),
        ("Honest releases", "release", "refuted", "holds"),
    )
    for honest, (title, *words) in ((False, leaks), (True, sound)):
        head = (
            words[0],
            *(["what it is"] if about else []),
            words[1],
            "undecided",
            words[2],
            *spoken,
        )
        rows = [_row(tally, about, expectations) for tally in found.cases if tally.honest == honest]
        tables += (
            [(f"{title}, {found.rows:,} rows, {found.releases} of each", head, rows)]
            if rows
            else []
        )
    return tables


def _row(tally: Tally, about: bool, expectations: Sequence[str]) -> tuple[str, ...]:
    together, each = tally.together, [tally.by_expectation.get(name) for name in expectations]
    by = (
        "–" if counts is None else " · ".join(str(counts[verdict]) for verdict in VERDICTS)
        for counts in each
    )
    figures = share(together, "fails"), str(together["undecided"]), str(together["holds"])
    return (tally.case, *([tally.about] if about else []), *figures, *by)


def summary(found: SelfTest) -> list[str]:
    """Return the totals of all cases, with intervals."""
    leaks, alarms = found.total(False), found.false_alarms()
    lines = ["Under an expectation's name: releases of which it fails · is undecided · holds."]
    if sum(leaks.values()):
        lines.append(
            f"Leaks: {share(leaks, 'fails')} found, {leaks['undecided']} undecided, {share(leaks, 'holds')} acquitted."
        )
        names = dict.fromkeys(
            name for tally in found.cases if not tally.honest for name in tally.by_expectation
        )
        lines += [
            f"Leaks on which {name} alone holds: {share(found.total(False, name), 'holds')}."
            for name in names
        ]
    lines += [
        f"Honest releases: {share(counts, 'fails')} refuted by {name}, whose level is {level:g}."
        for name, (counts, level) in alarms.items()
    ]
    return lines


def share(counts: Counts, verdict: Verdict) -> str:
    """Return a count with its exact 95 % interval.

    Examples
    --------
    >>> share({"fails": 5, "undecided": 0, "holds": 0}, "fails")
    '5 of 5 (48 to 100 %)'
    """
    low, high = interval(counts, verdict)
    return f"{counts[verdict]} of {sum(counts.values())} ({100 * low:.0f} to {100 * high:.0f} %)"
