"""Write the charts' script: ``python -m auditor_reports.charts.bundle``.

Only this command needs the package ``vl-convert-python``.
"""

from __future__ import annotations

from pathlib import Path

from .inert import deflated, script

PATH = Path(__file__).resolve().parents[1] / "templates" / "bundle.html"
NOTICE = (
    "/* Vega, Vega-Lite and Vega-Embed: Copyright (c) University of Washington Interactive Data Lab and contributors; BSD-3-Clause, "
    "https://github.com/vega/vega/blob/main/LICENSE. D3 in them: Copyright (c) Mike Bostock; ISC, https://github.com/d3/d3. */"
)


def made() -> str:
    """Return the HTML element with the compressed script."""
    from vl_convert import javascript_bundle  # imported here because reports do not need it

    return deflated(
        script(f"{NOTICE}\n{javascript_bundle('window.vegaEmbed = vegaEmbed;')}"), id="bundle"
    )


if __name__ == "__main__":
    PATH.write_text(made(), encoding="utf-8")
