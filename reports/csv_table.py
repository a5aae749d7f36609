"""Measurements as one CSV table, safe for spreadsheets."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from typing import Any, ClassVar

from auditor.registry import register
from auditor.results.model import AuditResult
from auditor.results.records import Measurement
from auditor.results.renderer import Renderer, escaped, visible, without_formula


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
