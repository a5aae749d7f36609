"""Results and releases in a notebook; slow imports are local."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from auditor.errors import AuditorError
from auditor.registry import register
from auditor.results.model import AuditResult
from auditor.results.renderer import Display

if TYPE_CHECKING:
    from .charts.plots import Plots

DRAWS = ("altair", "narwhals", "jsonschema")
"""Altair and the packages that it cannot load without."""


@register
class Notebook(Display):
    """HTML fragment with verdicts and comparison, in the notebook's colours."""

    name = "notebook"
    suffix: ClassVar[str] = ".html"

    def render(self, results: Sequence[AuditResult]) -> str:
        """Return the fragment, one part per audit."""
        from .html import environment
        from .layout.audit import audit_document

        template = environment().get_template("notebook.html.j2")
        documents = [audit_document(result, brief=True) for result in results]
        blocks = [[held for one in each.sections for held in one.blocks] for each in documents]
        return "\n".join(
            template.render(document=one, blocks=held)
            for one, held in zip(documents, blocks, strict=True)
        )

    def release(self, release: Any) -> str:
        """Return a release's law and levels as HTML, without any value of a copy."""
        from .html import environment

        first = release.copies[0] if release.copies else release.original
        rows = int(first.shape[0])
        width = int(first.shape[1]) if len(first.shape) > 1 else 1
        scheme = type(release.scheme)
        return (
            environment()
            .get_template("release.html.j2")
            .render(
                scheme=release.scheme.name,
                summary=scheme.summary(),
                claims=getattr(scheme, "claims", ""),
                levels=release.levels,
                rows=rows,
                attributes=width,
                parameters=release.scheme.parameters.model_dump(mode="json", by_alias=True),
            )
        )

    def plots(self, result: AuditResult) -> Plots:
        """Return the charts of a result.

        Raises
        ------
        AuditorError
            Altair is not installed.
        """
        try:
            from .charts.plots import Plots
        except ModuleNotFoundError as missing:
            if missing.name not in DRAWS:
                raise
            why = f"charts are drawn by Altair, and the package {missing.name!r} is not installed: pip install altair"
            raise AuditorError(
                f"{why}. With matplotlib draw from the table: result.frame()."
            ) from None

        return Plots(result)
