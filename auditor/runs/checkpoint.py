"""Never twice the same work: keeps what every finished task yielded, and hands it out again when a run is resumed."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from auditor.process import interrupt
from auditor.results.codec import CodecError, codec
from auditor.runs.journal import Journal, part_key
from auditor.runs.task_keys import Identity
from auditor.runs.workers import Numbered

T = TypeVar("T")
R = TypeVar("R")


def quiet(message: str) -> None:
    """Tell nobody."""


@dataclass(frozen=True)
class Keep:
    """Where a run keeps what it has finished.

    Attributes
    ----------
    folder : Path
        The folder of its results, which is there.
    resume : bool
        Whether to use what an earlier run kept there.
    tell : callable
        Told in one line what is reused and why the rest is not.
    """

    folder: Path
    resume: bool = False
    tell: Callable[[str], None] = quiet


class Clock:
    """Deals the seconds that pass out among what is finished, one thing after the other."""

    def __init__(self) -> None:
        self._before = time.perf_counter()

    def lap(self) -> float:
        """Return the seconds since it was last asked, or made."""
        before, self._before = self._before, time.perf_counter()
        return self._before - before


class Unfinished:
    """What has been found for tasks that are not finished: JSON values by the task's place among those handed out, and a name.

    Parameters
    ----------
    journal : Journal
    keys : sequence of str
        Of the tasks handed out.
    sure : callable
        Whether what is found now may be kept.
    clock : Clock

    Attributes
    ----------
    spent : float
        Seconds that what was read took when it was found.
    seconds : list of float
        What each task's parts took, whoever found them.
    """

    def __init__(
        self, journal: Journal, keys: Sequence[str], sure: Callable[[], bool], clock: Clock
    ) -> None:
        self._journal, self._keys, self._sure, self._clock = journal, keys, sure, clock
        self.spent, self.seconds = 0.0, [0.0] * len(keys)

    def read(self, place: int, name: str) -> Any:
        """Return what was kept; None when nothing was."""
        try:
            seconds, value = self._journal.read(part_key(self._keys[place], name))
            took = float(seconds)
        except (TypeError, ValueError):
            return None
        self.seconds[place] += took
        self.spent += took
        return value

    def keep(self, name: str, values: Mapping[int, Any]) -> None:
        """Keep JSON values, by task, until the run is whole; ``name`` has no spaces.

        Raises
        ------
        StorageError
            They cannot be kept, as on a full disk.
        """
        if not values or not self._sure():
            return
        for place, value in values.items():
            seconds = round(self._clock.lap(), 6)
            self.seconds[place] += seconds
            self._journal.append(part_key(self._keys[place], name), [seconds, value])


class TaskCheckpoint(Generic[R]):
    """Between a run and the carrying out of its tasks: agnostic of what a task is.

    Parameters
    ----------
    keep : Keep
    identity : Identity
        With one key for each task.
    declared : type
        What a task yields, for the codec.
    complete : callable
        Whether a result is worth keeping; others are tried again by the next run.

    Attributes
    ----------
    spent : float
        Seconds that the results handed out again took when they were computed.
    """

    def __init__(
        self, keep: Keep, identity: Identity, declared: Any, complete: Callable[[R], bool]
    ) -> None:
        self._keep, self._identity, self._complete = keep, identity, complete
        self._encode, self._decode = codec(declared)
        self.spent = 0.0

    def finished(
        self, tasks: Sequence[T], carry_out: Callable[[Sequence[T], Unfinished], Numbered[R]]
    ) -> Numbered[R]:
        """Yield every task's result: those kept first, then the others as they are finished, with what was found for them before.

        Raises
        ------
        StorageError
            A result cannot be kept, as on a full disk.
        """
        keys = self._identity.keys
        with Journal(self._keep.folder, self._identity.parts, self._keep.resume) as journal:
            known = {}
            for number, key in enumerate(keys):
                entry = self._read(journal, key)
                if entry is not None:
                    known[number] = entry
            missing = [number for number in range(len(keys)) if number not in known]
            self._announce(
                journal,
                len(known),
                len(keys),
                journal.parts_of({keys[number] for number in missing}),
            )
            yield from known.items()
            clock = Clock()
            begun = Unfinished(journal, [keys[number] for number in missing], self._sure, clock)
            try:
                with closing(
                    _checked(carry_out([tasks[number] for number in missing], begun))
                ) as results:
                    for place, result in results:
                        number, seconds = missing[place], clock.lap() + begun.seconds[place]
                        yield number, self._kept(journal, keys[number], result, seconds)
                        clock.lap()
            finally:
                self.spent += begun.spent
            journal.finish(keys)

    def _read(self, journal: Journal, key: str) -> R | None:
        """Return what was kept; None when there is nothing, or nothing that can be made sense of."""
        entry = journal.read(key)
        try:
            seconds, plain = entry
            result: R = self._decode(plain)
            self.spent += float(seconds)
        except (CodecError, TypeError, ValueError, RecursionError):
            return None
        return result

    def _kept(self, journal: Journal, key: str, result: R, seconds: float) -> R:
        """Keep a result, and return it as the next run would read it: one that is resumed must not differ in so much as a type."""
        if not self._sure() or not self._complete(result):
            return result
        text = journal.append(key, [round(seconds, 6), self._encode(result)])
        decoded: R = self._decode(json.loads(text)[1])
        return decoded

    def _sure(self) -> bool:
        """Whether everything was computed from the files as they were when the run began."""
        changed = self._identity.files_changed()
        if changed:
            self._keep.tell(
                f"{', '.join(changed)} changed while it was audited: what was computed since is not kept for --resume"
            )
            self._identity.stamps.clear()
            self._identity.unsure = True
        return not self._identity.unsure

    def _announce(self, journal: Journal, known: int, total: int, parts: int) -> None:
        tell, done = self._keep.tell, f"{known} of {total} tasks"
        if not self._keep.resume:
            if journal.entries and not journal.whole:
                tell(
                    f"an earlier run was not finished; its {journal.entries} finished tasks are replaced (--resume would have used them)"
                )
            return
        if not journal.entries and not parts and not journal.damaged:
            tell(f"nothing to resume in {journal.path.parent}: every task is carried out")
            return
        why = f"; changed since: {', '.join(journal.changed)}" if journal.changed else ""
        torn = (
            f"; {journal.damaged} damaged {'entry is' if journal.damaged == 1 else 'entries are'} left out"
            if journal.damaged
            else ""
        )
        begun = f", and {parts} part{'s' if parts > 1 else ''} of others" if parts else ""
        tell(f"resumed: {done} are finished already{begun}{why}{torn}")


def _checked(results: Numbered[R]) -> Numbered[R]:
    with closing(results) as made:
        for place, result in made:
            interrupt.check()
            yield place, result
