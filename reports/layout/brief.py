"""First screen of a report: verdict, comparison and expectations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..wording.words import STATUS_MARKS
from . import document as tree

MOST = 12
"""Number of holding expectations to name; all others are named."""
CHANGES = 5
"""Number of remedies."""
LEFT = "normalized error of the worst coalition; 0 exact, 1 a mere guess"
WHOLE = "The page opens every cell and draws every chart; --full prints all of it here."


def brief(document: tree.Document) -> tree.Document:
    """Return the short form of a report on an audit."""
    *others, last = _kept(document.sections)  # the verdict section always exists
    return replace(
        document,
        sections=[*others, replace(last, blocks=[*last.blocks, tree.Paragraph(WHOLE, "note")])],
    )


def _kept(sections: Sequence[tree.Section]) -> Iterator[tree.Section]:
    for one in sections:
        lead = [tree.Paragraph(LEFT, "lead")] if one.key == "comparison" else []
        blocks = [*lead, *(short for block in one.blocks for short in _shortened(block))]
        if blocks and one.key in ("verdict", "comparison", "expectations", "gaps", "changes"):
            yield replace(one, blocks=blocks)


def _shortened(block: tree.Block) -> Iterator[tree.Block]:
    if isinstance(block, (tree.Verdicts, tree.Matrix)):
        yield replace(block, brief=True)
    elif isinstance(block, tree.Checks):
        kept = [one for one in block.found if one.status != "holds"]
        holding = [one for one in block.found if one.status == "holds"]
        yield tree.Checks([*kept, *holding[:MOST]], brief=True)
        if len(holding) > MOST:
            yield tree.Paragraph(f"… and {len(holding) - MOST:,} more that hold", "note")
    elif isinstance(block, tree.Items) and tree.TERMINAL in block.media and block.most:  # remedies
        yield replace(block, most={tree.TERMINAL: CHANGES})
    elif (
        isinstance(block, tree.Paragraph)
        and tree.PAGE in block.media
        and tree.TERMINAL in block.media
    ):
        yield block
    elif isinstance(block, tree.Terms):  # short names of knowledge
        yield block
    # failures
    elif isinstance(block, tree.Fold) and block.summary.startswith(STATUS_MARKS["fails"]):
        yield block
