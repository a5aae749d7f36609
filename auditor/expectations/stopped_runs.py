"""What can be said of an audit that was stopped: what is missing leaves every expectation that covers it undecided."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from auditor.expectations.base import covers
from auditor.results.evidence import Statement
from auditor.results.records import ExpectationRecord


class Missing(NamedTuple):
    """A task that was not finished."""

    point: dict[str, Any]
    scheme: str


def undecided(
    record: ExpectationRecord, expectation: Statement, missing: Sequence[Missing]
) -> ExpectationRecord:
    """Return the verdict that an expectation deserves when some tasks are missing.

    Undecided if any task it speaks of is missing, even where what was finished would refute it: a
    test is corrected for all the cells it covers, and they were not all looked at. What was found
    so far is reported.

    Parameters
    ----------
    record : ExpectationRecord
        The verdict on what was finished.
    expectation : Statement
        Its filter by ``scheme`` and ``sweep`` says which tasks it speaks of; without such fields it
        speaks of all.
    missing : sequence of Missing
    """
    lacking = sum(covers(expectation.parameters, task.scheme, task.point) for task in missing)
    if not lacking:
        return record
    tasks = "1 task that it covers is" if lacking == 1 else f"{lacking} tasks that it covers are"
    so_far = f"; so far: {record.status}: {record.why}" if record.status != "undecided" else ""
    return record.model_copy(
        update={"status": "undecided", "why": f"the audit was stopped: {tasks} missing{so_far}"}
    )
