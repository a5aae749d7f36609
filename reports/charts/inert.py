"""What keeps a page inert and small: blocks that nothing in them can close, and a content security policy that lists every script."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Iterable
from typing import Any

from markupsafe import Markup

_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def json_block(value: Any) -> Markup:
    """Return JSON that is safe inside a ``script`` element: nothing in it can end the element or open a comment."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character, escape in _ESCAPES.items():
        text = text.replace(character, escape)
    return Markup(text)


def deflated(text: str, **attributes: str) -> Markup:
    """Return an element that holds a text compressed, for the page's script to inflate; the same text makes the same bytes.

    Parameters
    ----------
    text : str
        Any text; what is inside cannot be read, run or closed by the text itself.
    attributes : str
        Attributes of the element, escaped.

    Returns
    -------
    Markup
        A ``script`` element of a type that browsers never run: base64 of a raw deflate stream (RFC 1951), its inflated size beside it.
    """
    content = text.encode("utf-8", "backslashreplace")
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    stream = packer.compress(content) + packer.flush()
    written = Markup("").join(Markup(' {}="{}"').format(name, value) for name, value in attributes.items())
    start = Markup('<script type="application/x-deflate" data-size="{}"{}>').format(len(content), written)
    return start + Markup(base64.b64encode(stream).decode("ascii") + "</script>")


def foldable(content: str, folded: bool) -> Markup:
    """Return a part of the page as it is, or, folded, as text that the page's script unfolds in its place."""
    return deflated(content, **{"data-fold": ""}) if folded else Markup(content)


def inflated(element: str) -> str:
    """Return the text that `deflated` made an element of."""
    return zlib.decompress(base64.b64decode(element.partition(">")[2].partition("<")[0]), -zlib.MAX_WBITS).decode("utf-8")


def script(source: str) -> Markup:
    """Return our own script's source, ready to stand inside its element, with the line ends that browsers hash."""
    text = source.replace("\r\n", "\n").replace("\r", "\n")
    return Markup(text.replace("</script", "<\\/script").replace("<!--", "<\\!--"))


def packed(columns: dict[str, list[Any]]) -> dict[str, Any]:
    """Write columns of repeated text as numbers into a list of the different texts."""
    return {name: _packed(values) for name, values in columns.items()}


def _packed(values: list[Any]) -> Any:
    if not values or not all(isinstance(value, str) for value in values):
        return values
    known: dict[str, int] = {}
    return {"at": [known.setdefault(value, len(known)) for value in values], "of": list(known)}


def content_policy(scripts: Iterable[str], styles: Iterable[str]) -> str:
    """Return a policy that lets these scripts and styles run, and nothing else happen: no request, no frame, no form.

    ``data:`` images are for the PNG that a reader exports. ``unsafe-eval`` is not needed, because Vega runs its
    expressions in an interpreter here.
    """
    listed = " ".join(_source(text) for text in scripts)
    styled = " ".join(_source(text) for text in styles)
    return (
        f"default-src 'none'; script-src {listed}; style-src {styled}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )  # fmt: skip


def _source(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
