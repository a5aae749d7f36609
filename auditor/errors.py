"""The errors a user can mend; everything else that is raised is a bug and keeps its traceback.

No message may hold an original value: say the column, the row number and what was expected, never what was found there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from auditor.text.spelling import closest

WRONG_REQUEST, FAILED_RUNNING = 2, 3
"""Exit statuses of the program: something asked for cannot be had, and something failed while it was carried out."""
LONGEST_LINE = 500
"""Characters of a message's line; what is longer is shown by its beginning and its end."""
MOST_LINES = 100
"""Lines of a message: nobody reads on, and a log must not be filled by one request."""
LONGEST_LIST = 320
"""Characters of a list of valid names."""


def bounded(message: str) -> str:
    r"""Return a message of at most a hundred lines of at most 500 characters, and how many lines more there were.

    Examples
    --------
    >>> len(bounded("x" * 10_000)), bounded("wrong\n" * 1_000).endswith("and 900 problems more")
    (500, True)
    """
    lines = message.removesuffix("\n").split("\n")
    if len(lines) > MOST_LINES + 1:  # one line more may be the count of another message's
        lines = [*lines[:MOST_LINES], f"and {len(lines) - MOST_LINES:,} problems more"]
    return "\n".join(shortened(line, LONGEST_LINE) for line in lines)


def shortened(text: str, longest: int) -> str:
    """Return a text with its middle left out if it is too long: what is wrong stands at one of its ends."""
    return text if len(text) <= longest else f"{text[: longest - longest // 4 - 1]}…{text[-(longest // 4) :]}"


class AuditorError(Exception):
    """Root of the errors that are the request's fault: shown as one message, of bounded length, without a traceback."""

    def __init__(self, message: object = "") -> None:
        super().__init__(bounded(str(message)))


class DataError(AuditorError):
    """The table cannot be audited as it is (text column, missing or infinite values, constant column …).

    ``path`` is the field of a scenario's ``data``, or of a state of knowledge, that asks for what cannot be had, as ``("columns", 1)``;
    empty for the whole of it.
    """

    def __init__(self, message: str, path: tuple[str | int, ...] = ()) -> None:
        super().__init__(message)
        self.path = path


class PluginError(AuditorError):
    """A plugin is unknown, registered twice, or broke its contract."""


class PluginFailed(AuditorError):  # noqa: N818 - what happened, told in the report
    """A plugin raised what it must not; the message says what may be reported of it (``auditor.process.containment``)."""


class AuditorWarning(UserWarning):
    """Something that a user should know of a request that is carried out all the same; shown as one message, too."""


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

    def bounded(self) -> Problem:
        """Return it with a path and a message of bounded length, on one line."""
        path, message = (shortened(" ".join(text.split("\n")), most) for text, most in ((self.path, 120), (self.message, 360)))
        return replace(self, path=path, message=message)

    def __str__(self) -> str:
        where = ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)
        what = f"{self.path} {self.message}" if self.path else self.message
        return f"{where}: {what}" if where else what


class ScenarioError(AuditorError):
    """Everything that is wrong with a scenario, all at once: ``problems`` has the first hundred."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        every = tuple(problems)
        self.problems = tuple(problem.bounded() for problem in every[:MOST_LINES])
        more = [f"and {len(every) - MOST_LINES:,} problems more"] if len(every) > MOST_LINES else []
        super().__init__("\n".join([*map(str, self.problems), *more]))


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
    close = closest(name, names)
    if close:
        return "; did you mean " + " or ".join(shortened(repr(match), LONGEST_LIST // 4) for match in close) + "?"
    return "; valid are " + _enumerated(names) if names else ""


def _enumerated(names: list[str]) -> str:
    """Return as many names as a reader takes in, and how many more there are."""
    shown: list[str] = []
    for name in names:
        shown.append(shortened(name, LONGEST_LIST // 4))
        if sum(map(len, shown)) > LONGEST_LIST and len(shown) < len(names):
            return ", ".join(shown) + f" and {len(names) - len(shown):,} more"
    return ", ".join(shown)
