"""Arguments of several commands, tab completion, and their guard."""

from __future__ import annotations

import atexit
import json
import os
import re
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import wraps
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from click import get_current_context
from click.exceptions import Abort, ClickException, Exit
from rich_click import Choice, Context, IntRange, Parameter, Path as PathType, argument, option

from auditor.base import (
    FAILED_RUNNING,
    AuditorError,
    AuditorWarning,
    PluginFailed,
    StorageError,
    bounded,
    counted,
)
from auditor.process.environment import reserved, say, shipped_scenarios

if TYPE_CHECKING:
    from auditor.base.types import Names, Options, Plain


Parse = Callable[[Any], Any]


def scenarios(context: Context, parameter: Parameter, begun: str) -> list[Any]:
    """Complete a scenario's name from shipped scenarios and files."""
    from click.shell_completion import CompletionItem

    return [
        *(CompletionItem(path.stem) for path in shipped_scenarios() if path.stem.startswith(begun)),
        CompletionItem(begun, type="file"),
    ]


def parsed(parse: Parse) -> Callable[[Any, Any, Any], Any]:
    """Click callback that converts an option unless it is missing."""
    return lambda context, parameter, value: None if value is None else parse(value)


OPTIONS: dict[str, dict[str, Plain]] = json.loads(
    files("auditor.cli").joinpath("options.json").read_text(encoding="utf-8")
)
"""Arguments and options by command, as click takes them; ``@NAME`` includes another list."""
TYPES = {
    "file": PathType(dir_okay=False),
    "folder": PathType(file_okay=False),
    "float": float,
    "int": int,
}


def options(command: str, **parse: Parse) -> Parse:
    """Decorator that adds a command's options; ``parse`` converts some, by name."""

    def add(function: Any) -> Any:
        for names, stated in reversed(OPTIONS[command].items()):
            one = options(names[1:]) if names[0] == "@" else _option(names.split(), parse, **stated)
            function = one(function)
        return function

    return add


class Formats(Choice[str]):
    """Report formats, also of plugins."""

    def convert(self, value: Any, param: Parameter | None, ctx: Context | None) -> Any:
        """Name of a renderer."""
        from auditor import registry

        is_added = value not in self.choices and registry.has("renderer", str(value))
        return value if is_added else super().convert(value, param, ctx)


def _option(
    names: list[str], parse: Options, type: Any = None, renderers: bool = False, **stated: Any
) -> Any:
    if isinstance(type, dict | list):
        chosen = Formats if renderers else Choice
        stated["type"] = IntRange(**type) if isinstance(type, dict) else chosen(type)
    elif type:
        stated["type"] = TYPES[type]
    if names == ["scenarios"]:
        stated["shell_complete"] = scenarios
    if names[0][0] != "-":
        return argument(*names, **stated)
    if convert := parse.get(names[-1].strip("-").replace("-", "_")):
        stated["callback"] = parsed(convert)
    return option(*names, **{"show_default": "default" in stated} | stated)


def with_budget(command: Callable[..., Any]) -> Callable[..., Any]:
    """Pass ``--budget`` on as a change."""

    @wraps(command)
    def inner(changes: Names, budget: str | None, **others: Any) -> None:
        command(changes=(*changes, *([] if budget is None else [f"budget={budget}"])), **others)

    return inner


def read_all(scenarios: Names, changes: Names, seed: int | None) -> list[Any]:
    """Read every scenario, report all errors, find every plugin."""
    from auditor.scenario.read import read_scenario

    overrides = [override(change) for change in changes]
    found = each(scenarios, lambda scenario: read_scenario(scenario, overrides, seed))
    warn_of_broken_plugins()
    return found


def override(change: str) -> tuple[str, Any]:
    """Parse ``PATH=VALUE``, with the value in scenario syntax."""
    path, equals, text = change.partition("=")
    if not equals or not path:
        raise AuditorError(f"--set needs PATH=VALUE, as data.rows=1000; got {change!r}")
    return path.strip(), value_of(text, f"--set {path.strip()}")


def value_of(text: str, option: str) -> Any:
    """Parse a value in scenario syntax."""
    from auditor.scenario.yaml_document import scalar

    return scalar(text, file=option)


def numbers(text: str, option: str = "--levels") -> list[float]:
    """Parse comma-separated levels."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        wanted = "must be numbers separated by commas, as 0.25,0.5,1"
        raise AuditorError(f"{option} {wanted}; got {text!r}") from None


def names(texts: str | Names) -> Names:
    """Names separated by commas, from one or several texts."""
    return tuple(
        name for name in ",".join([texts] if isinstance(texts, str) else texts).split(",") if name
    )


def all_overrides(changes: Names) -> Plain:
    """Parse repeated ``NAME=VALUE``."""
    return dict(map(override, changes))


def spans(texts: Names) -> dict[str, tuple[float, float]]:
    """Parse repeated ``--bounds COLUMN=LOW:HIGH``."""
    return dict(map(span, texts))


def span(text: str) -> tuple[str, tuple[float, float]]:
    """Parse ``--bounds COLUMN=LOW:HIGH``, the range of one record's change."""
    column, _, both = text.rpartition("=")
    low, _, high = both.partition(":")
    try:
        ends = float(low), float(high)
    except ValueError:
        ends = (0.0, 0.0)
    if not column or not 0.0 < ends[1] - ends[0] < 1e35:
        raise AuditorError(
            f"--bounds must be COLUMN=LOW:HIGH with low < high, as age=0:120; got {text!r}"
        )
    return column, ends


def each(items: Sequence[Any], act: Parse) -> list[Any]:
    """Apply ``act`` to every item and report all errors together."""
    done, messages = [], []
    for item in items:
        try:
            done.append(act(item))
        # not an error of the item: full output, or a broken plugin
        except (StorageError, PluginFailed):
            raise
        except AuditorError as error:
            messages.append(str(error))
    if messages:
        raise AuditorError("\n".join(messages))
    return done


def warn_of_broken_plugins() -> None:
    """Find plugins; warn of failed imports."""
    from auditor import registry

    registry.discover_if_extended()
    for failure in registry.failures:
        say(f"warning: {failure}")


@contextmanager
def one_line_warnings() -> Iterator[None]:
    """Print every distinct warning as one line."""
    from auditor.process.containment import tell_warning

    told: list[str] = []

    def show(message: Any, category: Any, filename: str, lineno: int, *_: Any, **__: Any) -> None:
        if not issubclass(category, AuditorWarning):
            tell_warning(category, filename, lineno)
        elif (text := f"warning: {message}") not in told:
            told.append(text)
            say(bounded(text))

    with warnings.catch_warnings():
        warnings.simplefilter("always", AuditorWarning)
        warnings.showwarning = show
        yield


FIELD = re.compile(r"`([\w-]+):(?: ([\w-]+))?`")
"""A scenario field in a message, with or without its value."""


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Reserve standard output for the report and protect the exit status.

    It handles Ctrl-C and errors that escape the containment of plugin calls.
    """

    @wraps(command)
    def inner(*arguments: Any, **options: Any) -> None:
        from auditor.process.containment import (
            CtrlC,
            exits_refused,
            is_ours,
            own_interrupt,
            withhold_uncaught,
        )

        undo = withhold_uncaught()
        try:
            with reserved(), own_interrupt(), exits_refused():
                command(*arguments, **options)
        except CtrlC as error:
            say(str(error) or "interrupted")
            sys.exit(error.status)
        except AuditorError as error:
            error.args = (
                with_options(
                    str(error),
                    {
                        option
                        for each in get_current_context().command.params
                        for option in each.opts
                    },
                ),
            )
            raise
        except Exception as error:
            # raised by a plugin; this program raises none of these
            if isinstance(error, EOFError | Exit | ClickException | Abort):
                sys.exit(report_bug(error))
            raise
        except BaseException as error:
            if isinstance(error, SystemExit) and is_ours(error):
                raise
            sys.exit(report_bug(error))
        finally:
            undo()

    return inner


def with_options(message: str, options: Collection[str]) -> str:
    """Message with scenario fields written as the command's options.

    Examples
    --------
    >>> with_options("set `missing: drop`, or choose with `columns:`", ["--missing"])
    'set `--missing drop`, or choose with `columns:`'
    """

    def named(field: re.Match[str]) -> str:
        option, value = f"--{field[1]}", field[2]
        return (
            field[0]
            if option not in options
            else f"`{option}`"
            if value is None
            else f"`{option} {value}`"
        )

    return FIELD.sub(named, message)


def report_bug(error: BaseException) -> int:
    """Print a bug's location and return the exit status."""
    from auditor.process.containment import known

    frames = "".join(traceback.format_tb(error.__traceback__))
    message = (
        str(error)
        if os.environ.get("AUDITOR_DEBUG")
        else "message withheld, it might hold data; AUDITOR_DEBUG=1 shows it"
    )
    say(f"Traceback (most recent call last):\n{frames}{known(type(error)).__name__}: {message}")
    return FAILED_RUNNING


def close_up(before: Sequence[threading.Thread], status: Any) -> None:
    """Close standard output and end the process despite plugins' threads.

    Python would wait for these threads. Without them, functions registered with ``atexit`` run, and
    objects are not freed one by one.
    """
    from auditor.process.containment import withhold_uncaught

    withhold_uncaught()
    with suppress(OSError, ValueError, AttributeError):  # already closed
        sys.stdout.flush()
        os.dup2(2, 1)
    left = [
        thread
        for thread in threading.enumerate()
        if not (thread in before or thread.daemon or thread.name.startswith("auditor-"))
    ]

    def end() -> None:
        if not left:
            atexit.unregister(end)
            atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError, AttributeError):
                stream.flush()
        os._exit(status or 0)

    atexit.register(end)  # called first
    if left:
        say(
            f"warning: {counted(len(left), 'thread')} that a plugin started did not end; the program ends without it"
        )
        end()
