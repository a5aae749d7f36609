"""User errors; any other exception is a bug and keeps its traceback.

Messages hold no original value. They state the column, the row number and the expectation.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from auditor.base.text import closest

WRONG_REQUEST, FAILED_RUNNING = 2, 3
"""Exit statuses: wrong request, and failure while running."""
LONGEST_LINE = 500
"""Longest line of a message in characters; longer lines lose their middle."""
MOST_LINES = 100
"""Most lines of a message, so that one request cannot fill a log."""
LONGEST_LIST = 320
"""Longest list of valid names in characters."""


def bounded(message: str) -> str:
    r"""Limit a message to 100 lines of 500 characters, with a count of others.

    Examples
    --------
    >>> len(bounded("x" * 10_000)), bounded("wrong\n" * 1_000).endswith("and 900 problems more")
    (500, True)
    """
    lines = message.removesuffix("\n").split("\n")
    if len(lines) > MOST_LINES + 1:  # the extra line may be another message's count
        lines = [*lines[:MOST_LINES], f"and {len(lines) - MOST_LINES:,} problems more"]
    return "\n".join(shortened(line, LONGEST_LINE) for line in lines)


def shortened(text: str, longest: int) -> str:
    """Cut the middle of a long text, because errors are at its ends."""
    return (
        text
        if len(text) <= longest
        else f"{text[: longest - longest // 4 - 1]}…{text[-(longest // 4) :]}"
    )


class AuditorError(Exception):
    """Root of user errors: one message of limited length, without traceback."""

    def __init__(self, message: object = "") -> None:
        super().__init__(bounded(str(message)))


class DataError(AuditorError):
    """The table cannot be audited (text, missing values, constants …).

    ``path`` is the field of a scenario's ``data`` or knowledge that requests it, as ``("columns",
    1)``; empty for all.
    """

    def __init__(self, message: str, path: tuple[str | int, ...] = ()) -> None:
        super().__init__(message)
        self.path = path


class PluginError(AuditorError):
    """A plugin is unknown, registered twice, or breaks its contract."""


class PluginFailed(AuditorError):  # noqa: N818 - an outcome in reports
    """A plugin raised an unexpected exception; the message is safe."""


class AuditorWarning(UserWarning):
    """A note for the user on an accepted request, shown as one message."""


class StorageError(AuditorError):
    """A disk is full or broken during an audit; exit status of a failure."""


class WorkersLost(AuditorError):  # noqa: N818 - an outcome in reports
    """Worker processes died repeatedly: killed, or out of memory."""


class NotApplicable(AuditorError):  # noqa: N818 - an outcome in reports
    """An impossible pairing; reports show the message as the reason."""


@dataclass(frozen=True)
class Problem:
    """One error in a scenario, with its position.

    Attributes
    ----------
    path : str
        The field, as ``attacks[1].components``; empty for the whole document.
    message : str
        Expected and found, to follow the path in a sentence.
    file : str or None
        The scenario file, if any.
    line, column : int or None
        Position in the file, from 1.
    """

    path: str
    message: str
    file: str | None = None
    line: int | None = None
    column: int | None = None

    def bounded(self) -> Problem:
        """Return the error on one line, with limited path and message."""
        path, message = (
            shortened(" ".join(text.split("\n")), most)
            for text, most in ((self.path, 120), (self.message, 360))
        )
        return replace(self, path=path, message=message)

    def __str__(self) -> str:
        where = ":".join(
            str(part) for part in (self.file, self.line, self.column) if part is not None
        )
        what = f"{self.path} {self.message}" if self.path else self.message
        return f"{where}: {what}" if where else what


class ScenarioError(AuditorError):
    """All errors of a scenario; ``problems`` has the first hundred."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        every = tuple(problems)
        self.problems = tuple(problem.bounded() for problem in every[:MOST_LINES])
        more = [f"and {len(every) - MOST_LINES:,} problems more"] if len(every) > MOST_LINES else []
        super().__init__("\n".join([*map(str, self.problems), *more]))


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return ``; did you mean 'llse'?``, or the list of valid names."""
    names = sorted(set(known))
    close = closest(name, names)
    if close:
        return (
            "; did you mean "
            + " or ".join(shortened(repr(match), LONGEST_LIST // 4) for match in close)
            + "?"
        )
    return "; valid are " + _enumerated(names) if names else ""


def _enumerated(names: list[str]) -> str:
    shown: list[str] = []
    for name in names:
        shown.append(shortened(name, LONGEST_LIST // 4))
        if sum(map(len, shown)) > LONGEST_LIST and len(shown) < len(names):
            return ", ".join(shown) + f" and {len(names) - len(shown):,} more"
    return ", ".join(shown)
