import json
import sys
import unicodedata

from auditor.base import _JOINERS, _STEERING, _UNSEEN, clean, escaped

EVERY = range(sys.maxunicode + 1)


def each_character(text):
    """`clean` without its short cut."""
    line = text.replace("\n", " ").replace("\t", " ")
    return "".join(
        "�" if unicodedata.category(c) in _UNSEEN and c not in _JOINERS else c for c in line
    )


def test_every_character_is_cleaned_as_by_its_category():
    assert [c for c in map(chr, EVERY) if clean(c) != each_character(c)] == []


def test_a_document_with_any_steering_character_is_looked_through():
    assert [
        c
        for c in map(chr, EVERY)
        if _STEERING.match(c) and c not in "\n\t\r" and escaped(f'"é{c}"\n') == f'"é{c}"\n'
    ] == []
    for text in ("plain", "é – ✓", "a\u00a0b", "line\nends", "\x7f", "\u2028", "\ufeffé"):
        document = json.dumps({"text": text}, ensure_ascii=False, indent=1)
        assert escaped(document) == "".join(
            f"\\u{ord(c):04x}" if _STEERING.match(c) and c not in "\n\t\r" else c for c in document
        )
