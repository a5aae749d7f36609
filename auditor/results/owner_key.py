"""The owner's key, which stays on this machine, and fingerprints under it.

A plain hash of a small table can be guessed: eight yes/no records need at most 256 tries. A hash
under a secret key (HMAC) shows equal data of two audits on one machine, and nothing to others.
Fingerprints under differently named keys cannot be compared.

The key is 32 bytes of the operating system's entropy in ``fingerprint.key``, mode 0600, in the
folder ``AUDITOR_STATE``, otherwise in the user's state folder. If it cannot be written, a key lasts
as long as the process.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import tempfile
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

NAME = "fingerprint.key"
BYTES = 32


def fingerprint(digest: str, public: bool = False) -> str:
    """Return a table's digest if public, otherwise its HMAC-SHA-256."""
    return (
        digest
        if public
        else hmac.new(_key(state_folder()), digest.encode(), hashlib.sha256).hexdigest()
    )


def key_name() -> str:
    """Return a name of this machine's key: 16 hexadecimal digits, unrelated to the key."""
    return fingerprint("name of the key")[:16]


def state_folder() -> Path:
    """Return the key's folder by the system's conventions (XDG, or Windows)."""
    if stated := os.environ.get("AUDITOR_STATE"):
        return Path(stated)
    system = os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_STATE_HOME")
    return (Path(system) if system else Path("~/.local/state")) / "auditor"


@lru_cache(maxsize=4)
def _key(folder: Path) -> bytes:
    try:
        path = folder.expanduser() / NAME
        with suppress(FileNotFoundError):
            if len(found := path.read_bytes()) == BYTES:
                return found
            path.unlink()  # incomplete, so never used
        return _made(path)
    except (OSError, RuntimeError):  # no writable home
        return os.urandom(BYTES)


def _made(path: Path) -> bytes:
    """Make the key atomically; a faster process's key wins."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # mode 0600
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{NAME}-")
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
