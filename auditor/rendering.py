"""What a renderer is: results in, text out."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from auditor.registry import Plugin
from auditor.results import AuditResult


class Renderer(Plugin):
    """Turns results into a document. Reads results only: never the data, never a copy."""

    kind = "renderer"
    suffix: ClassVar[str] = ".txt"
    """File ending of what it makes."""
    media_type: ClassVar[str] = "text/plain"

    @abstractmethod
    def render(self, results: Sequence[AuditResult]) -> str:
        """Return the document for one audit or several side by side."""
        raise NotImplementedError
