"""Results as data: measurements as CSV, the whole document as JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, ClassVar

from auditor.registry import register
from auditor.results.model import AuditResult
from auditor.results.records import Measurement
from auditor.results.renderer import Renderer, escaped, visible, without_formula

if TYPE_CHECKING:
    from auditor.results.comparison import Comparison


@register
class Csv(Renderer):
    """One row per measurement; ``sweep`` as JSON, lists separated by blanks."""

    name = "csv"
    suffix: ClassVar[str] = ".csv"

    def render(self, results: Sequence[AuditResult]) -> str:
        """Return the table; the first column names the audit."""
        output = io.StringIO()
        writer = csv.writer(output, lineterminator="\n")
        writer.writerow(["audit", *Measurement._fields])
        for result in results:
            writer.writerows(
                [cell(result.name), *map(cell, record)] for record in result.measurements
            )
        return output.getvalue()


def cell(value: Any) -> Any:
    """Format one value; an apostrophe disarms spreadsheet formulas."""
    if isinstance(value, dict):
        return escaped(json.dumps(value, ensure_ascii=False, sort_keys=True, default=str))
    if isinstance(value, tuple):
        return " ".join(str(item) for item in value)
    if isinstance(value, str):
        return visible(without_formula(value))
    return value


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
