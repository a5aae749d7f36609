"""Results and releases in a notebook; slow imports are local."""

import json
import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from auditor.base import AuditorError
from auditor.registry import register
from auditor.results.comparison import Renderer
from auditor.results.model import AuditResult

from .audit_document import audit_document
from .charts import CONFIG, Chart, charts
from .figures import template
from .pages import filled
from .reading import Reading

WIDTH, PAIR = 560, 360
"""Width in pixels of a single chart and of each of two side by side."""
KEYS = {
    "values": "values",
    "collusion": "collusion",
    "coalitions": "map",
    "errors": "errors",
    "frontier": "frontier",
    "sweep": "sweep-",
    "runtime": "runtime-",
}
"""Begin of the page's key of each chart."""


class Plots:
    """Charts of one audit as Altair charts.

    Keyword arguments select the page's options by their text: ``attribute``, ``adversary``
    (``"llse, knows means and correlations exactly"``), ``point``, ``coalition``, ``figure``.
    Defaults are the page's. ``path`` selects a swept path, by default the first.
    """

    def __init__(self, result: AuditResult) -> None:
        found = charts(Reading(result), "plot")
        self._charts = {
            name: [one for one in found if one.id.startswith(f"plot-{key}")]
            for name, key in KEYS.items()
        }

    def __call__(self, name: str | None = None, **chosen: str) -> Any:
        """Draw the named chart, or the first available one.

        Raises
        ------
        AuditorError
            The results have no chart of this name, or no charts at all.
        """
        which = name or next(iter(self.available), "")
        path = chosen.pop("path", None)
        found = [one for one in self._charts.get(which, []) if path in (None, one.path)]
        if not found:
            what = f"{name or ''} chart{f' along {path!r}' if path else ''}".strip()
            known = ", ".join(self.available) or "none"
            raise AuditorError(f"these results have no {what}; they have {known}")
        return drawn(found[0], chosen)

    def __getattr__(self, name: str) -> Any:
        if name not in KEYS:
            raise AttributeError(name)
        return lambda path=None, **chosen: self(name, **chosen, **({"path": path} if path else {}))

    def __dir__(self) -> list[str]:
        return ["available", *KEYS]

    def __repr__(self) -> str:
        return f"Plots({', '.join(self.available)})"

    @property
    def available(self) -> list[str]:
        """Names of the available charts."""
        return [name for name in KEYS if self._charts[name]]


def drawn(chart: Chart, chosen: dict[str, str]) -> Any:
    """Chart of the page as one Altair chart."""
    values = _choices(chart, chosen)
    width = WIDTH if len(chart.views) == 1 else PAIR
    kept = ("data", "height", "layer")
    views = [{"width": width, **{key: view[key] for key in kept}} for view in chart.views]
    document = views[0] if len(views) == 1 else {"hconcat": views}
    legend, *params = chart.views[0]["params"]
    at = [f"points-{place}" for place in range(len(views))]
    rows = [
        {key: value for key, value in row.items() if key[0] != "_"} for row in chart.chosen(values)
    ]
    document |= {
        "params": [
            legend | {"views": at},
            *(one | {"value": values[one["name"]]} for one in params),
        ],
        "datasets": {"rows": rows},
        "title": chart.title,
        "config": CONFIG | {"background": "#ffffff"},
        "$schema": chart.views[0]["$schema"],
    }
    shown = _coloured(json.dumps(document))
    for name, titles in chart.titles.items():
        shown = shown.replace(json.dumps([f"${name}"]), json.dumps(titles[values[name]]))
    import altair  # 0.25 s

    return altair.Chart.from_dict(json.loads(shown))


def _choices(chart: Chart, chosen: dict[str, str]) -> dict[str, int]:
    known = {control.name: control for control in chart.controls}
    for name, text in chosen.items():
        if name not in known:
            raise AuditorError(f"unknown choice {name!r}; this chart has {list(known)}")
        if text not in known[name].options:
            raise AuditorError(f"{name} must be one of {known[name].options}; got {text!r}")
    return chart.values | {name: known[name].options.index(text) for name, text in chosen.items()}


def _coloured(text: str) -> str:
    palette = _palette()
    return re.sub(r"var\((--[\w-]+)\)", lambda found: palette[found[1]], text)


@cache
def _palette() -> dict[str, str]:
    style = template("report.css")
    return dict(re.findall(r"(--[\w-]+):\s*(#[0-9a-f]{6})", style.partition("@media")[0]))


DRAWS = ("altair", "narwhals", "jsonschema")
"""Altair and the packages that it cannot load without."""


@register
class Notebook(Renderer):
    """HTML fragment with verdicts and comparison, in the notebook's colours."""

    name = "notebook"

    def render(self, results: Sequence[AuditResult]) -> str:
        documents = [audit_document(result, brief=True) for result in results]
        blocks = [[held for one in each.sections for held in one.blocks] for each in documents]
        return "\n".join(
            filled("notebook.html.j2", document=one, blocks=held)
            for one, held in zip(documents, blocks, strict=True)
        )

    def plots(self, result: AuditResult) -> Plots:
        """Charts of a result.

        Raises
        ------
        AuditorError
            Altair is not installed.
        """
        try:
            import altair  # noqa: F401
        except ModuleNotFoundError as missing:
            if missing.name not in DRAWS:
                raise
            why = f"charts are drawn by Altair, and the package {missing.name!r} is not installed: pip install altair"
            raise AuditorError(
                f"{why}. With matplotlib draw from the table: result.frame()."
            ) from None

        return Plots(result)
