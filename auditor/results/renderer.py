"""Base of renderers, which convert results to text."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar

from auditor.base.errors import AuditorError
from auditor.base.text import clean, counted, escaped, visible, without_formula
from auditor.registry import Plugin

if TYPE_CHECKING:
    from auditor.results.comparison import Comparison
    from auditor.results.model import AuditResult
    from auditor.results.records import Advice

__all__ = ["Renderer", "clean", "counted", "escaped", "visible", "without_formula"]


class Renderer(Plugin):
    """Converts results to a document, without access to data or copies."""

    kind = "renderer"
    suffix: ClassVar[str] = ".txt"
    """File ending."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Give every renderer only results that may be disclosed."""
        super().__init_subclass__(**options)
        if "render" in vars(cls):
            render = cls.render

            @wraps(render)
            def of_disclosed(self: Renderer, results: Sequence[AuditResult]) -> str:
                return render(self, [result.disclosed() for result in results])

            cls.render = of_disclosed  # type: ignore[method-assign]

    @abstractmethod
    def render(self, results: Sequence[AuditResult]) -> str:
        """Document for one or several audits."""
        raise NotImplementedError

    def render_so_far(self, result: AuditResult) -> str:
        """One line on the verdict of an unfinished audit; empty without a figure."""
        return ""

    def render_comparison(self, *comparisons: Comparison) -> str:
        """Document on changes between audits.

        Raises
        ------
        AuditorError
            The format has none.
        """
        raise AuditorError(f"format {self.name!r} has no comparison of two audits")

    def render_advice(self, advice: Advice) -> str:
        """Document on a recommended release.

        Raises
        ------
        AuditorError
            The format has none.
        """
        raise AuditorError(f"format {self.name!r} has no page of advice")
