"""The scenario as run, as YAML that can be run again."""

from __future__ import annotations

import json
import re
from typing import Any

import yaml

from auditor.results.renderer import escaped

WIDTH = 100
"""Line width for folding at spaces; nothing is cut."""
_TAG = re.compile(r"<(?=[A-Za-z/!?])")


class _Dumper(yaml.SafeDumper):
    """YAML writer that quotes markup, so that its brackets can be escaped."""

    def ignore_aliases(self, data: Any) -> bool:
        """Repeat repeated values in full."""
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style='"' if _TAG.search(text) else None
    )


_Dumper.add_representer(str, _text)


def plain_scenario(scenario: dict[str, Any]) -> dict[str, Any]:
    """Return a scenario of JSON values only."""
    found: dict[str, Any] = json.loads(json.dumps(scenario, default=str))
    return found


def scenario_yaml(scenario: dict[str, Any]) -> str:
    """Return a scenario as YAML that reads back to an equal scenario.

    Terminal controls, direction marks and tags become YAML escapes. With direction marks, the whole
    text is ASCII.

    Parameters
    ----------
    scenario : dict
        As in results; values outside JSON become text.
    """
    held = plain_scenario(scenario)
    text = _dumped(held, unicode=True)
    return text if escaped(text) == text else _dumped(held, unicode=False)


def _dumped(scenario: dict[str, Any], *, unicode: bool) -> str:
    text: str = yaml.dump(
        scenario, Dumper=_Dumper, sort_keys=False, allow_unicode=unicode, width=WIDTH
    )
    return _TAG.sub(r"\\x3C", text)
