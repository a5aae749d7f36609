"""Verdicts of an audit that was stopped: missing tasks leave an expectation undecided."""

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
    """Return the verdict if some tasks are missing.

    It is undecided if any covered task is missing, even if the finished ones refute the claim: tests
    are corrected for all cells covered.

    Parameters
    ----------
    record : ExpectationRecord
        The verdict on the finished tasks.
    expectation : Statement
        Its filter by ``scheme`` and ``sweep`` names the tasks it covers; without one it covers all.
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
