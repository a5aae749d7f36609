"""Run fuzz cases in this process, and check their output."""

from __future__ import annotations

import contextlib
import io
import re
import signal
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.parquet as pq

from auditor.base import LONGEST_LINE, MOST_LINES
from auditor.cli import main
from auditor_reports.charts import inflated

LONGEST_RUN = 300
"""Seconds of processor time after which a command is stopped, which is a fault: a hundred times
what any takes, as machines differ."""
LARGEST_MESSAGE = 64_000
"""Characters on standard error, or on standard output of `check`."""
MOST_CELLS, MOST_VALUES = 400, 20_000
"""Cells and drawn values of a plan that is still carried out: a second or two."""

CANARY = re.compile(r"Zq[a-z]{8}|\d{5}\.\d{6}|\b\d{10}\b")
"""What cells of the fuzz's tables look like, and nothing else: a word, a number with decimals, an
integer."""
_PLAN = re.compile(r"([\d,]+) cells, .*\n  about ([\d,]+) values")
_WARNING = re.compile(r"^.*\.py:\d+: \w*Warning: ", re.MULTILINE)
_DEFLATED = re.compile(r'<script type="application/x-deflate".*?</script>', re.DOTALL)


@dataclass(frozen=True)
class Case:
    """Files of a folder, and a command.

    Attributes
    ----------
    kind : str
        The mutation, for the tally.
    files : mapping of str to bytes
        By name.
    secrets : frozenset of str
        Cells of the tables, which no output may contain.
    arguments : tuple of str
        A command of the program; ``run`` follows a ``check`` of a small plan.
    run : bool
        Whether it does.
    """

    kind: str
    files: Mapping[str, bytes]
    secrets: frozenset[str] = frozenset()
    arguments: tuple[str, ...] = ("check", "s.yaml")
    run: bool = False


@dataclass
class Verdict:
    """Outcome of a case, its faults and processor time."""

    outcome: str
    faults: list[str] = field(default_factory=list)
    seconds: float = 0.0


@dataclass(frozen=True)
class Ended:
    """Exit status (None after an exception) and output of a command."""

    status: int | None
    out: str
    err: str


class _Hung(BaseException):
    """Raised at the time limit; never contained."""


def judged(case: Case) -> Verdict:
    """Run a case in its own folder."""
    start = time.process_time()
    with tempfile.TemporaryDirectory(prefix="fuzz") as folder, contextlib.chdir(folder):
        for name, content in case.files.items():
            Path(name).write_bytes(content)
        first = _carried_out(case.arguments)
        verdict = Verdict(_word(case.arguments[0], first), _faults(first, case))
        if first.status == 0 and case.run and _small(first.out):
            second = _carried_out(("run", *case.arguments[1:]))
            verdict.outcome = _word("run", second)
            verdict.faults += _faults(second, case)
            if second.status == 0 and not any(Path("audit").glob("*/results.json")):
                verdict.faults.append("status 0 without results")
        verdict.faults += [
            f"a cell in {path}: {found}"
            for path, text in _written()
            for found in sorted(_leaked(text, case))[:3]
        ]
    verdict.seconds = time.process_time() - start
    return verdict


def _word(command: str, ended: Ended) -> str:
    told = {
        0: "well",
        1: "expectation fails",
        2: "refused",
        3: "failed while running",
        None: "escaped",
    }
    return f"{command}: {told.get(ended.status, f'status {ended.status}')}"


def _carried_out(arguments: tuple[str, ...]) -> Ended:
    out, err = (
        io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors=errors)
        for errors in ("strict", "backslashreplace")
    )
    status: int | None = None
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), _alarm():
        try:
            main(arguments)
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else int(end.code is not None)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            err.write(f"Traceback: {type(error).__name__} got out")
    return Ended(status, *(_text(stream) for stream in (out, err)))


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    return stream.buffer.getvalue().decode("utf-8", "replace")  # type: ignore[attr-defined]


@contextlib.contextmanager
def _alarm() -> Iterator[None]:
    def ring(*_: object) -> None:
        raise _Hung

    before = signal.signal(signal.SIGPROF, ring)
    # of the clock's time other programs may have the most
    signal.setitimer(signal.ITIMER_PROF, LONGEST_RUN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _small(plan: str) -> bool:
    found = _PLAN.search(plan)
    return found is not None and all(
        int(figure.replace(",", "")) <= most
        for figure, most in zip(found.groups(), (MOST_CELLS, MOST_VALUES), strict=True)
    )


def _faults(ended: Ended, case: Case) -> list[str]:
    """Return the faults of a command's exit status and output."""
    checked = case.arguments[0] == "check" and "written:" not in ended.err
    said = ended.err + (ended.out if checked else "")
    lines = ended.err.splitlines()
    wrong = {
        f"exit status {ended.status}": ended.status not in (0, 1, 2, 3),
        f"a traceback: {(lines or [''])[-1][:200]} {_frame(lines)}": "Traceback" in ended.err,
        f"a library's warning: {(_WARNING.search(ended.err) or [''])[0]}": bool(
            _WARNING.search(ended.err)
        ),
        f"{len(lines)} lines of messages": len(lines) > MOST_LINES + 1,
        f"a line of {max(map(len, lines), default=0)} characters": any(
            len(line) > LONGEST_LINE + len("warning: ") for line in lines
        ),
        f"{len(said)} characters of messages": len(said) > LARGEST_MESSAGE,
        "refused without a message": ended.status == 2 and not ended.err.strip(),
    }
    leaks = [
        f"a cell in a message: {found}"
        for found in sorted(_leaked(ended.err + ended.out, case))[:3]
    ]
    return [told for told, is_so in wrong.items() if is_so] + leaks


def _frame(lines: list[str]) -> str:
    """Return where a traceback ends."""
    return next((line.strip() for line in reversed(lines) if line.startswith('  File "')), "")


def _leaked(text: str, case: Case) -> set[str]:
    return set(CANARY.findall(text)) & case.secrets if case.secrets else set()


def _written() -> Iterator[tuple[str, str]]:
    """Yield the text of every file of results, compressed parts inflated, and of a scenario made for a table."""
    for path in [*sorted(Path("audit").rglob("*")), Path("new.yaml")]:
        if not path.is_file():
            continue
        text = (
            str(pq.read_table(path).to_pydict())
            if path.suffix == ".parquet"
            else path.read_bytes().decode("utf-8", "replace")
        )
        yield path.name, text + "".join(inflated(part) for part in _DEFLATED.findall(text))


def secrets(tables: Mapping[str, bytes], shown: bytes) -> frozenset[str]:
    """Return the distinctive cells of tables, except values written in the scenario."""
    told = set(CANARY.findall(shown.decode("utf-8", "replace")))
    return (
        frozenset(found for content in tables.values() for found in CANARY.findall(_cells(content)))
        - told
    )


def _cells(content: bytes) -> str:
    if not content.startswith(b"PAR1"):
        return content.decode("utf-8", "replace")
    try:
        return str(pq.read_table(io.BytesIO(content)).to_pydict())
    except Exception:  # a damaged file: nobody reads its cells
        return ""
