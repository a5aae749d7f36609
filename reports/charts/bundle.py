"""The charts' script: Vega, Vega-Lite and Vega-Embed as one, made by ``python -m reports.charts.bundle`` and shipped as pages hold it.

Making it takes a second and a half and the package ``vl-convert-python``, which no report needs otherwise. ``tests/reports/test_bundle.py``
says when what is shipped is not what that package makes.
"""

from __future__ import annotations

from pathlib import Path

from reports.charts.inert import deflated, script

PATH = Path(__file__).resolve().parents[1] / "templates" / "bundle.html"
NOTICE = (
    "/* Vega, Vega-Lite and Vega-Embed: Copyright (c) University of Washington Interactive Data Lab and contributors; BSD-3-Clause, "
    "https://github.com/vega/vega/blob/main/LICENSE. D3 in them: Copyright (c) Mike Bostock; ISC, https://github.com/d3/d3. */"
)


def made() -> str:
    """Return the element that holds the script, compressed (``reports.charts.inert.deflated``)."""
    from vl_convert import javascript_bundle  # needed here alone

    return deflated(script(f"{NOTICE}\n{javascript_bundle('window.vegaEmbed = vegaEmbed;')}"), id="bundle")


if __name__ == "__main__":
    PATH.write_text(made(), encoding="utf-8")
