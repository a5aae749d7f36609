"""The errors a user can mend; everything else that is raised is a bug and keeps its traceback.

No message may hold an original value: say the column, the row number and what was expected, never what was found there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches


class AuditorError(Exception):
    """Root of the errors that are the request's fault: shown as one message, without a traceback."""


class DataError(AuditorError):
    """The table cannot be audited as it is (text column, missing or infinite values, constant column …).

    ``path`` is the field of a scenario's ``data`` that asks for what cannot be had, as ``("columns", 1)``; empty for the data as a whole.
    """

    def __init__(self, message: str, path: tuple[str | int, ...] = ()) -> None:
        super().__init__(message)
        self.path = path


class PluginError(AuditorError):
    """A plugin is unknown, registered twice, or broke its contract."""


class PluginFailed(AuditorError):  # noqa: N818 - what happened, told in the report
    """A plugin raised what it must not; the message says what may be told of it (``auditor.containment``)."""


class StorageError(AuditorError):
    """A disk is full, or broken, while an audit runs: not the request's fault, so the exit status is that of a failure while running."""


class WorkersLost(AuditorError):  # noqa: N818 - what happened, told in the report
    """Worker processes died again and again: killed from outside, or by the system for want of memory."""


class NotApplicable(AuditorError):  # noqa: N818 - an outcome that is reported, not a fault
    """A pairing that makes no sense; the message is the reason, and it is reported, never dropped."""


@dataclass(frozen=True)
class Problem:
    """One thing wrong with a scenario, and where.

    Attributes
    ----------
    path : str
        The field, as ``attacks[1].components``; empty for the document as a whole.
    message : str
        What was expected and what was found, to be read after the path.
    file : str or None
        The scenario file, when there is one.
    line, column : int or None
        Position in the file, from 1.
    """

    path: str
    message: str
    file: str | None = None
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        where = ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)
        what = f"{self.path} {self.message}" if self.path else self.message
        return f"{where}: {what}" if where else what


class ScenarioError(AuditorError):
    """Everything that is wrong with a scenario, all at once."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return ``; did you mean 'llse'?``, or the list of what is known when nothing is close.

    Parameters
    ----------
    name : object
        What was written.
    known : iterable of str
        What would have been valid.
    """
    names = sorted(set(known))
    close = get_close_matches(str(name), names, n=2, cutoff=0.6)
    if close:
        return "; did you mean " + " or ".join(repr(match) for match in close) + "?"
    return "; known are " + ", ".join(names) if names else ""
