"""What a renderer is: results in, text out."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar

from auditor.errors import AuditorError
from auditor.registry import Plugin
from auditor.text.safe_text import clean, escaped, visible, without_formula

if TYPE_CHECKING:
    from auditor.results.advice import Advice
    from auditor.results.comparison import Comparison
    from auditor.results.model import AuditResult

__all__ = ["Display", "Renderer", "clean", "escaped", "visible", "without_formula"]


class Renderer(Plugin):
    """Turns results into a document. Reads results only: never the data, never a copy."""

    kind = "renderer"
    suffix: ClassVar[str] = ".txt"
    """File ending of what it makes."""

    def __init_subclass__(cls, **options: Any) -> None:
        """See to it that every renderer, whoever wrote and whoever calls it, is given what may leave the owner's machine, and no more."""
        super().__init_subclass__(**options)
        if "render" in vars(cls):
            render = cls.render

            @wraps(render)
            def of_disclosed(self: Renderer, results: Sequence[AuditResult]) -> str:
                return render(self, [result.disclosed() for result in results])

            cls.render = of_disclosed  # type: ignore[method-assign]

    @abstractmethod
    def render(self, results: Sequence[AuditResult]) -> str:
        """Return the document for one audit or several side by side."""
        raise NotImplementedError

    def render_comparison(self, *comparisons: Comparison) -> str:
        """Return the document on what changed between two audits, or between two of each of several scenarios.

        Raises
        ------
        AuditorError
            The format has none.
        """
        raise AuditorError(f"format {self.name!r} has no comparison of two audits")

    def render_advice(self, advice: Advice) -> str:
        """Return the document on which release to make.

        Raises
        ------
        AuditorError
            The format has none.
        """
        raise AuditorError(f"format {self.name!r} has no page of advice")


class Display(Renderer):
    """The renderer called ``notebook``: results and releases as a notebook shows them, and the plots of results."""

    @abstractmethod
    def release(self, release: Any) -> str:
        """Return a release as HTML: its law and levels, never a value of a copy."""
        raise NotImplementedError

    @abstractmethod
    def plots(self, result: AuditResult) -> Any:
        """Return an object whose methods return the charts of a result."""
        raise NotImplementedError
