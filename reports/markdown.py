"""The report as Markdown, for pull requests and job summaries."""

import re
from collections.abc import Sequence

from auditor.registry import register

from .document import Document, overview
from .figures import said
from .html import environment, filled
from .renderer import DocumentRenderer


@register
class Markdown(DocumentRenderer):
    """The page as Markdown, with tables for charts and the scenario as code."""

    name = "markdown"

    def written(self, documents: Sequence[Document]) -> str:
        environment(escape=False).filters |= {"safe_text": safe, "fence": fence}
        return filled(
            "report.md.j2", escape=False, documents=documents, overview=overview(documents)
        )


def safe(text: str) -> str:
    """Escape Markdown and HTML markup, table separators and links."""
    escaped = re.sub(r"([\\`*_{}\[\]#|~$])", r"\\\1", said(text))
    swaps = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "://": ":&#8203;//", "@": "&#64;"}
    for sign, entity in swaps.items():
        escaped = escaped.replace(sign, entity)
    return escaped


def fence(text: str) -> str:
    """Line of backticks that the text does not contain."""
    return "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
