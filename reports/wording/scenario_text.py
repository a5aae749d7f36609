"""The scenario as run, as YAML to be read, copied and run again: the same text in every report."""

from __future__ import annotations

import json
import re
from typing import Any

import yaml

from auditor.results.renderer import escaped

WIDTH = 100
"""Columns that lines are folded to where they have spaces; nothing is ever cut."""
_TAG = re.compile(r"<(?=[A-Za-z/!?])")


class _Dumper(yaml.SafeDumper):
    """Writes text that looks like markup in double quotes, so that its bracket can be written as an escape."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write what occurs twice twice."""
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"' if _TAG.search(text) else None)


_Dumper.add_representer(str, _text)


def plain_scenario(scenario: dict[str, Any]) -> dict[str, Any]:
    """Return a scenario made of what JSON has."""
    found: dict[str, Any] = json.loads(json.dumps(scenario, default=str))
    return found


def scenario_yaml(scenario: dict[str, Any]) -> str:
    """Return a scenario as YAML that reads back to the same.

    Nothing in it steers a terminal, turns a line around or looks like a tag: such characters are written as YAML's escapes. Text that
    would turn lines around makes the whole keep to ASCII.

    Parameters
    ----------
    scenario : dict
        As results hold it; values that JSON does not have are written as text.
    """
    held = plain_scenario(scenario)
    text = _dumped(held, unicode=True)
    return text if escaped(text) == text else _dumped(held, unicode=False)


def _dumped(scenario: dict[str, Any], *, unicode: bool) -> str:
    text: str = yaml.dump(scenario, Dumper=_Dumper, sort_keys=False, allow_unicode=unicode, width=WIDTH)
    return _TAG.sub(r"\\x3C", text)
