"""The owner's key, which stays on this machine, and fingerprints under it.

A plain hash of a small table can be guessed: eight yes/no records are found in at most 256 tries. A
hash under a secret key (HMAC) says whether two audits on one machine read the same data, and to
everybody else nothing. Without the key's name being the same, two fingerprints cannot be compared.

The key is 32 bytes of the operating system's entropy in ``fingerprint.key``, mode 0600, in the
folder that ``AUDITOR_STATE`` names, else where a user's programs keep their state. Where that
cannot be written, a key lasts as long as the process.
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
    """Return what may be reported of a table's digest: of a private one its HMAC-SHA-256, of a public one the digest itself."""
    return (
        digest
        if public
        else hmac.new(_key(state_folder()), digest.encode(), hashlib.sha256).hexdigest()
    )


def key_name() -> str:
    """Return a name for this machine's key, which says nothing of it: 16 hexadecimal digits."""
    return fingerprint("name of the key")[:16]


def state_folder() -> Path:
    """Return where the key is kept, as each system's conventions have it (XDG base directories elsewhere than on Windows)."""
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
            path.unlink()  # torn: nobody can have used it
        return _made(path)
    except (OSError, RuntimeError):  # no home, or none that can be written to
        return os.urandom(BYTES)


def _made(path: Path) -> bytes:
    """Make the key, whole or not at all; if another process was faster, theirs is the key."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # readable by its owner alone
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
