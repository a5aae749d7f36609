"""The report in a terminal; slow imports are local."""

from __future__ import annotations

import io
import shutil
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from auditor.registry import PluginParameters, register
from auditor.results.model import AuditResult
from auditor.results.renderer import Renderer

if TYPE_CHECKING:
    from rich.console import Console

    from auditor.results.advice import Advice
    from auditor.results.comparison import Comparison

    from .layout.document import Document


@register
class Terminal(Renderer):
    """Tables and a small plot for a terminal, in colour only on request."""

    name = "table"
    suffix: ClassVar[str] = ".txt"

    class Parameters(PluginParameters):
        """Width, colour and extent of the output.

        Attributes
        ----------
        width : int or None
            Columns, at least 40; None uses the terminal's width.
        color : bool
            Whether to write ANSI colour. No information depends on colour.
        full : bool
            Whether to write everything, or only verdict, comparison and expectations.
        """

        width: Annotated[int, Field(ge=40)] | None = Field(
            None, description="columns of the page; the terminal's by default"
        )
        color: bool = Field(False, description="whether to write colours as escape codes")
        full: bool = Field(
            True,
            description="whether to write everything, or verdict, comparison and expectations only",
        )

    def render_so_far(self, result: AuditResult) -> str:
        """Return the gate and the number of an unfinished audit."""
        from .figures.figures import said
        from .figures.reading import Reading
        from .wording.headline import headline
        from .wording.verdict import verdicts

        reading = Reading(result.disclosed())
        found = headline(reading, verdicts(reading))
        gate = found.gate if found.state == "bad" else "Nothing exposed yet"
        return f"{found.mark} {gate}. {said(found.number)}" if found.number else ""

    def render(self, results: Sequence[AuditResult]) -> str:
        """Return the report: one section per audit, and a summary of several."""
        from .layout.audit import audit_document

        brief = not self.parameters.full
        return self._written([audit_document(result, brief=brief) for result in results])

    def render_comparison(self, *comparisons: Comparison) -> str:
        """Return the differences between two audits, worst first."""
        from .layout.changes import changes_document

        return self._written([changes_document(comparison) for comparison in comparisons])

    def render_advice(self, advice: Advice) -> str:
        """Return the recommended release and its reasons."""
        from .layout.advice import advice_document

        return self._written([advice_document(advice)])

    def _written(self, documents: Sequence[Document]) -> str:
        from .layout.document import overview
        from .layout.terminal_writer import Writer

        console = self._console()
        writer = Writer(console, brief=not self.parameters.full)
        for document in documents:
            writer.document(document)
        if len(documents) > 1:
            writer.overview(overview(documents))
        output = console.file
        assert isinstance(output, io.StringIO)
        lines = [line.rstrip() for line in output.getvalue().splitlines()]
        return "\n".join(lines).strip("\n") + "\n"

    def _console(self) -> Console:
        from rich.console import Console

        color = self.parameters.color
        width = self.parameters.width or max(40, shutil.get_terminal_size((100, 24)).columns)
        return Console(
            file=io.StringIO(),
            width=width,
            force_terminal=color,
            color_system="256" if color else None,
            highlight=False,
            markup=False,
            emoji=False,
            legacy_windows=False,
            soft_wrap=False,
            no_color=not color,
        )
