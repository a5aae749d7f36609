"""Line of one release: `extend` and `append` continue its newest state, on whichever object they are called.

Two copies that are drawn from one pair of neighbours have independent noise beyond these neighbours, and average out. So a new copy is
drawn from all copies that are out, also from copies that another object or another process has added.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from auditor.runs.perturb import Release

_one_at_a_time = threading.RLock()


@dataclass(eq=False)
class Lineage:
    """Line of a release in memory, shared by all objects that `extend` and `append` have returned."""

    newest: Release | None = None

    def __deepcopy__(self, memo: Any) -> Lineage:
        """Return the line itself: a copied object is the same release."""
        return self

    @contextmanager
    def latest(self, release: Release, seed: int | None) -> Iterator[Release]:
        """Lock the line and yield the release to continue; with a seed, for studies, the release that was asked."""
        with _one_at_a_time:
            yield self.newest if self.newest is not None and seed is None else release

    def record(self, before: Release, made: Release, seed: int | None) -> Release:
        """Note a continued release as the newest and return it; with a seed it starts a line of its own."""
        if seed is not None:
            return made
        self.newest = replace(made, line=self)
        return self.newest
