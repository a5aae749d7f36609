r"""The report's tables as LaTeX; they need only ``\usepackage{booktabs}``."""

import re
from collections.abc import Iterable, Iterator, Sequence

from auditor.base import clean
from auditor.base.types import Names
from auditor.registry import register
from auditor.results.comparison import Renderer
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
from .sentences import capital, reproduce

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
Α A
Β B
Γ $\Gamma$
Δ $\Delta$
Ε E
Ζ Z
Η E
Θ $\Theta$
Ι I
Κ K
Λ $\Lamda$
Μ M
Ν N
Ξ $\Xi$
Ο O
Π $\Pi$
Ρ R
Σ $\Sigma$
Τ T
Υ $\csname Upsilon\endcsname$
Φ $\Phi$
Χ C
Ψ $\Psi$
Ω $\Omega$
α $\alpha$
β $\beta$
γ $\gamma$
δ $\delta$
ε $\epsilon$
ζ $\zeta$
η $\eta$
θ $\theta$
ι $\iota$
κ $\kappa$
λ $\lambda$
μ $\mu$
ν $\nu$
ξ $\xi$
ο o
π $\pi$
ρ $\rho$
σ $\sigma$
τ $\tau$
υ $\csname upsilon\endcsname$
φ $\phi$
χ $\chi$
ψ $\psi$
ω $\omega$
⁰ \textsuperscript{0}
¹ \textsuperscript{1}
² \textsuperscript{2}
³ \textsuperscript{3}
⁴ \textsuperscript{4}
⁵ \textsuperscript{5}
⁶ \textsuperscript{6}
⁷ \textsuperscript{7}
⁸ \textsuperscript{8}
⁹ \textsuperscript{9}
⁺ \textsuperscript{+}
⁻ \textsuperscript{$-$}
ᵀ \textsuperscript{T}
₀ \textsubscript{0}
₁ \textsubscript{1}
₂ \textsubscript{2}
₃ \textsubscript{3}
₄ \textsubscript{4}
₅ \textsubscript{5}
₆ \textsubscript{6}
₇ \textsubscript{7}
₈ \textsubscript{8}
₉ \textsubscript{9}
-- {-}{-}
,, {,}{,}
x̂ $\hat{x}$
X̂ $\hat{X}$
x̄ $\bar{x}$
X̄ $\bar{X}$
"""
SPELT = dict(line.split(" ", 1) for line in _SPELT.strip().splitlines())
"""TeX markup, ligatures of signs, and signs that a text font lacks."""
_PATTERN = re.compile("|".join(map(re.escape, sorted(SPELT, key=len, reverse=True))))


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
    return _PATTERN.sub(lambda found: SPELT[found[0]], clean(text))


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
                caption.append(capital(sentence(said(block.text))))
            elif isinstance(block, Bars | Checks | Matrix | Table):
                number += 1
                heads, rows, more = block.table().grid(MARKDOWN)
                label = f"{name}-{section.key}{f'-{number}' if number > 1 else ''}"
                text = " ".join([*caption, *([sentence(more)] if more else [])])
                yield _table(heads, rows, text, label)
                caption = [sentence(section.title)]
        yield from _tables(section.blocks, name)


def _table(heads: Names, lines: Sequence[Names], caption: str, label: str) -> str:
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
