"""The owner's key, and a register that notices a second release of one table.

Plain hashes can be guessed, so fingerprints are HMACs under 32 secret bytes in ``fingerprint.key``
(mode 0600), in the folder ``AUDITOR_STATE`` or the user's state folder. An unwritten key lasts as
long as the process.

Each line of ``releases.jsonl`` (mode 0600), next to the owner's key, has a release's place, date
and a keyed fingerprint of every perturbed column. Numbers are compared in 32 bits, so libraries
agree. A column counts as released if all values are equal in order. A selection of records or
another order is not noticed.
"""

import hashlib
import hmac
import json
import os
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

KEY = "fingerprint.key"
BYTES = 32


def fingerprint(digest: str, public: bool = False) -> str:
    """Table's digest if public, otherwise its HMAC-SHA-256."""
    return (
        digest
        if public
        else hmac.new(_key(state_folder()), digest.encode(), hashlib.sha256).hexdigest()
    )


def key_name() -> str:
    """Name of this machine's key: 16 hexadecimal digits, unrelated to the key."""
    return fingerprint("name of the key")[:16]


def state_folder() -> Path:
    """Key's folder by the XDG conventions."""
    if stated := os.environ.get("AUDITOR_STATE"):
        return Path(stated)
    return Path(os.environ.get("XDG_STATE_HOME") or "~/.local/state") / "auditor"


@lru_cache(maxsize=4)
def _key(folder: Path) -> bytes:
    try:
        path = folder.expanduser() / KEY
        with suppress(FileNotFoundError):
            if len(found := path.read_bytes()) == BYTES:
                return found
            path.unlink()  # incomplete
        return _made(path)
    except (OSError, RuntimeError):  # no writable home
        return os.urandom(BYTES)


def _made(path: Path) -> bytes:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # mode 0600
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{KEY}-")
    try:
        with os.fdopen(descriptor, "wb") as handle:
            handle.write(os.urandom(BYTES))
            handle.flush()
            os.fsync(descriptor)
        with suppress(FileExistsError):
            os.link(temporary, path)
    finally:
        Path(temporary).unlink(missing_ok=True)
    return path.read_bytes()


NAME = "releases.jsonl"
IN_MEMORY = "in memory"
AGAIN = "two releases that know nothing of each other say more together than the better one: extend the first in place of a second"


class ColumnPrints:
    """Fingerprints of a table's columns, updated block by block."""

    def __init__(self, names: Sequence[str]) -> None:
        self._digests = {name: hashlib.sha256() for name in names}

    def add_numbers(self, x: Any) -> None:
        """Add records, shape (b, N)."""
        for digest, column in zip(
            self._digests.values(), np.asarray(x, dtype=np.float32).T, strict=True
        ):
            digest.update((column + np.float32(0)).tobytes())  # −0 is 0

    def add_labels(self, columns: Iterable[tuple[Sequence[Any], Any]]) -> None:
        """Add records of categories: labels and codes of each column."""
        for digest, (labels, codes) in zip(self._digests.values(), columns, strict=True):
            digest.update(
                np.array([hashlib.sha256(str(label).encode()).digest()[:8] for label in labels])[
                    codes
                ].tobytes()
            )

    def by_column(self) -> dict[str, str]:
        """Each column's fingerprint under the owner's key."""
        return {name: fingerprint(digest.hexdigest()) for name, digest in self._digests.items()}

    def of_table(self) -> str:
        """One fingerprint of all columns under the owner's key."""
        return fingerprint(" ".join(digest.hexdigest() for digest in self._digests.values()))


def earlier_release(prints: ColumnPrints) -> str | None:
    """Sentence on the last release of one of these columns, or None."""
    names = {mark: name for name, mark in prints.by_column().items()}
    for line in reversed(_lines()):
        with suppress(ValueError, LookupError, TypeError):
            known = json.loads(line)
            if found := [names[mark] for mark in known["columns"] if mark in names]:
                which = f"column {found[0]!r}" + (
                    f" and {len(found) - 1} more" if found[1:] else ""
                )
                return f"the same records were released before, {known['place']} on {known['date']} ({which}); {AGAIN}"
    return None


def register_release(prints: ColumnPrints, folder: Path | None = None) -> list[str]:
    """Add a release in a folder or in memory, if the state folder is writable.

    Returns a sentence on the last release of one of its columns, if any.
    """
    before = earlier_release(prints)
    place = IN_MEMORY if folder is None else f"in {folder.absolute()}"
    line = json.dumps(
        {
            "columns": sorted(prints.by_column().values()),
            "place": place,
            "date": date.today().isoformat(),
        }
    )
    with suppress(OSError, RuntimeError):
        if line not in _lines():
            descriptor = os.open(_path(), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as handle:
                handle.write(line + "\n")
    return [before] if before else []


def _path() -> Path:
    return state_folder().expanduser() / NAME


def _lines() -> list[str]:
    try:
        return _path().read_text(encoding="utf-8").splitlines()
    except (OSError, RuntimeError, ValueError):
        return []
