"""What `import auditor` offers."""

from __future__ import annotations

from pathlib import Path

import auditor


def test_no_name_that_is_offered_is_a_module_s() -> None:
    """Importing a module binds its name in the package: `auditor.attack` would be a function or a module, by who came first."""
    modules = {path.stem for path in Path(auditor.__file__).parent.iterdir()}
    assert not modules & set(auditor.__all__)


def test_every_name_that_is_offered_is_there() -> None:
    assert all(getattr(auditor, name).__name__ == name for name in auditor.__all__)
