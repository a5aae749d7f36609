"""Base of renderers that write the document tree."""

from abc import abstractmethod
from collections.abc import Sequence

from auditor.results.comparison import Comparison, Renderer
from auditor.results.model import AuditResult
from auditor.results.records import Advice

from .advice import advice_document
from .audit_document import audit_document
from .changes import changes_document
from .document import Document


class DocumentRenderer(Renderer):
    """Base of renderers that write the document tree."""

    brief = False

    @abstractmethod
    def written(self, documents: Sequence[Document]) -> str:
        """Write one or several documents."""

    def render(self, results: Sequence[AuditResult]) -> str:
        """Report: one part per audit, and a summary of several."""
        found = enumerate(results, start=1)
        return self.written([audit_document(one, n, brief=self.brief) for n, one in found])

    def render_comparison(self, *comparisons: Comparison) -> str:
        """Differences between two audits, worst first."""
        return self.written([*map(changes_document, comparisons, range(1, len(comparisons) + 1))])

    def render_advice(self, advice: Advice) -> str:
        """Recommended release, its frontier and its reasons."""
        return self.written([advice_document(advice)])
