r"""The report's tables as LaTeX; they need only ``\usepackage{booktabs}``."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

from auditor.registry import register
from auditor.results.comparison import Renderer, clean
from auditor.results.model import AuditResult

from .audit_document import audit_document
from .document import (
    MARKDOWN,
    Bars,
    Block,
    Checks,
    Matrix,
    Paragraph,
    Section,
    Table,
    sentence,
    shown,
)
from .figures import said
from .sentences import reproduce

WIDE = 36
"""Columns wider than this number of characters wrap."""

_SPELT = r"""
\ \textbackslash{}
{ \{
} \}
$ \$
& \&
# \#
% \%
_ \_
^ \textasciicircum{}
~ \textasciitilde{}
< \textless{}
> \textgreater{}
| \textbar{}
" {''}
` {`}
' {'}
[ {[}
] {]}
* {*}
– --
— ---
− $-$
… \dots{}
± $\pm$
× $\times$
· $\cdot$
√ $\surd$
½ 1/2
≤ $\le$
≥ $\ge$
≠ $\ne$
≈ $\approx$
∝ $\propto$
→ $\to$
‖ $\Vert$
∫ $\int$
⊗ $\otimes$
ℓ $\ell$
✓ $\surd$
✗ $\times$
★ $\star$
☆ $\diamond$
� ?
« $\ll$
» $\gg$
“ ``
” ''
‘ `
’ '
"""
SPELT = dict(line.split(" ", 1) for line in _SPELT.strip().splitlines())
"""TeX markup, and signs that a text font lacks."""
ACCENTS = {"\u0302": r"$\hat{%s}$", "\u0304": r"$\bar{%s}$"}


@register
class Latex(Renderer):
    """Every table of the report as a captioned ``table``, without prose.

    Other scripts than Latin and Greek need XeLaTeX or LuaLaTeX.
    """

    name = "latex"

    def render(self, results: Sequence[AuditResult]) -> str:
        return "\n".join(["% In the preamble: \\usepackage{booktabs}\n", *map(_audit, results)])


def safe(text: object) -> str:
    """Escape text for TeX."""
    return _PATTERN.sub(_spelt, clean(text))


def _spelt(found: re.Match[str]) -> str:
    text = found[0]
    if len(text) == 2 and text[1] in ACCENTS:
        return ACCENTS[text[1]] % text[0]
    if text in _DOUBLED:
        return f"{{{text}}}"
    if text[0] in _RAISED:
        return rf"\textsuperscript{{{safe(unicodedata.normalize('NFKC', text))}}}"
    if text[0] in _LOWERED:
        return rf"\textsubscript{{{safe(unicodedata.normalize('NFKC', text))}}}"
    return SPELT.get(text) or _greek(text)


def _greek(letter: str) -> str:
    *_, size, _, name = unicodedata.name(letter).lower().split()[:4]
    if size == "capital":
        return rf"$\{name.capitalize()}$" if name in _CAPITALS else name[0].upper()
    return {"lamda": r"$\lambda$", "omicron": "o"}.get(name, rf"$\{name}$")


_DOUBLED = "-,"
"""TeX ligatures: two of these in a row would become another character."""
_RAISED, _LOWERED = "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ᵀ", "₀₁₂₃₄₅₆₇₈₉"
_CAPITALS = "gamma delta theta lamda xi pi sigma upsilon phi psi omega".split()
_PATTERN = re.compile(
    f"[{_DOUBLED}](?=[{_DOUBLED}])|[A-Za-z][{''.join(ACCENTS)}]|[{_RAISED}]+|[{_LOWERED}]+|[{re.escape(''.join(SPELT))}]|[Α-ΡΣ-Ωα-ρσ-ω]"
)


def _audit(result: AuditResult) -> str:
    head = f"% {clean(result.title)}\n% {clean(reproduce(result))}\n"
    name = re.sub(r"[^a-z0-9]+", "-", result.name.lower()).strip("-") or "audit"
    return "\n".join([head, *_tables(audit_document(result).sections, name)])


def _tables(blocks: Iterable[Block], name: str) -> Iterator[str]:
    for section in shown(blocks, MARKDOWN):
        if not isinstance(section, Section):
            continue
        caption, number = [sentence(section.title)], 0
        for block in shown(section.blocks, MARKDOWN):
            if isinstance(block, Paragraph) and block.role in ("lead", "note"):
                caption.append(sentence(said(block.text)))
            elif isinstance(block, (Bars, Checks, Matrix, Table)):
                number += 1
                heads, rows, more = block.table().grid(MARKDOWN)
                label = f"{name}-{section.key}{f'-{number}' if number > 1 else ''}"
                text = " ".join([*caption, *([sentence(more)] if more else [])])
                yield _table(heads, rows, text, label)
                caption = [sentence(section.title)]
        yield from _tables(section.blocks, name)


def _table(heads: Sequence[str], lines: Sequence[Sequence[str]], caption: str, label: str) -> str:
    widths = [max(map(len, column)) for column in zip(heads, *lines, strict=True)]
    wide = sum(width > WIDE for width in widths)
    columns = "".join(
        f"p{{{0.6 / wide:.2f}\\linewidth}}" if width > WIDE else "l" for width in widths
    )
    rows = [
        rf"{' & '.join(safe(cell.replace(chr(10), '; ')) for cell in row)} \\"
        for row in (heads, *lines)
    ]
    inside = "\n".join([r"\toprule", rows[0], r"\midrule", *rows[1:], r"\bottomrule"])
    begin = f"\\begin{{table}}[htbp]\n\\centering\\small\n\\caption{{{safe(caption)}}}\\label{{tab:{label}}}\n"
    return f"{begin}\\begin{{tabular}}{{@{{}}{columns}@{{}}}}\n{inside}\n\\end{{tabular}}\n\\end{{table}}\n"
