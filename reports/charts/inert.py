"""Inert page blocks, the content security policy and the charts' script.

``python -m auditor_reports.charts.inert`` writes the script; it needs ``vl-convert-python``.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from markupsafe import Markup

BUNDLE = Path(__file__).resolve().parents[1] / "templates" / "bundle.html"
NOTICE = (
    "/* Vega, Vega-Lite and Vega-Embed: Copyright (c) University of Washington Interactive Data Lab and contributors; BSD-3-Clause, "
    "https://github.com/vega/vega/blob/main/LICENSE. D3 in them: Copyright (c) Mike Bostock; ISC, https://github.com/d3/d3. */"
)
_ESCAPES = {
    "<": "\\u003c",
    ">": "\\u003e",
    "&": "\\u0026",
    "\u2028": "\\u2028",
    "\u2029": "\\u2029",
}


def json_block(value: Any) -> Markup:
    """Return JSON that cannot close a ``script`` element or open a comment."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character, escape in _ESCAPES.items():
        text = text.replace(character, escape)
    return Markup(text)


def deflated(text: str, **attributes: str) -> Markup:
    """Return an element with compressed text, which browsers never run.

    It holds the base64 of a raw deflate stream (RFC 1951); ``data-size`` is the inflated size in bytes.
    The text cannot close the element.
    """
    content = text.encode("utf-8", "backslashreplace")
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    stream = packer.compress(content) + packer.flush()
    written = Markup("").join(
        Markup(' {}="{}"').format(name, value) for name, value in attributes.items()
    )
    start = Markup('<script type="application/x-deflate" data-size="{}"{}>').format(
        len(content), written
    )
    return start + Markup(base64.b64encode(stream).decode("ascii") + "</script>")


def inflated(element: str) -> str:
    """Return the text of an element made by `deflated`."""
    return zlib.decompress(
        base64.b64decode(element.partition(">")[2].partition("<")[0]), -zlib.MAX_WBITS
    ).decode("utf-8")


def script(source: str) -> Markup:
    """Escape a script for its element, with the line ends that browsers hash."""
    text = source.replace("\r\n", "\n").replace("\r", "\n")
    return Markup(text.replace("</script", "<\\/script").replace("<!--", "<\\!--"))


def content_policy(scripts: Iterable[str], styles: Iterable[str]) -> str:
    """Return a policy that allows only these scripts and styles.

    Vega interprets its expressions, so ``unsafe-eval`` is not needed.
    """
    listed = " ".join(_source(text) for text in scripts)
    styled = " ".join(_source(text) for text in styles)
    return (
        f"default-src 'none'; script-src {listed}; style-src {styled}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _source(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def bundle() -> str:
    """Return the HTML element with the charts' compressed script."""
    from vl_convert import javascript_bundle  # imported here because reports do not need it

    return deflated(
        script(f"{NOTICE}\n{javascript_bundle('window.vegaEmbed = vegaEmbed;')}"), id="bundle"
    )


if __name__ == "__main__":
    BUNDLE.write_text(bundle(), encoding="utf-8")
