"""The results as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, ClassVar

from auditor.registry import register
from auditor.results.model import AuditResult
from auditor.results.renderer import Renderer, escaped

if TYPE_CHECKING:
    from auditor.results.comparison import Comparison


@register
class Json(Renderer):
    """The whole results document; a list of documents for several audits."""

    name = "json"
    suffix: ClassVar[str] = ".json"

    def render(self, results: Sequence[AuditResult]) -> str:
        """Return one audit's document, or a list of documents."""
        documents = [result.to_json().rstrip("\n") for result in results]
        return (documents[0] if len(documents) == 1 else f"[{','.join(documents)}]") + "\n"

    def render_comparison(self, *comparisons: Comparison) -> str:
        """Return the comparison and its outcome; a list for several scenarios."""
        documents = [
            {"worse": comparison.worse, **asdict(comparison)} for comparison in comparisons
        ]
        lone = len(documents) == 1 and not documents[0]["name"]
        return (
            escaped(json.dumps(documents[0] if lone else documents, ensure_ascii=False, indent=2))
            + "\n"
        )
