"""docs/evidence/performance.md and its charts, from what was measured."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

import altair as alt
import numpy as np
import pandas as pd

from benchmarks import FOLDER
from benchmarks.scaling import Curve
from benchmarks.timing import Measured

DOCS = FOLDER.parent / "docs/evidence"

INTRODUCTION = """\
# Performance

<!-- Written by `python -m benchmarks`; do not edit. -->

Every figure is a ratio of two times measured in one run, one right after the other, round by round: the median of the rounds' ratios,
with their quartiles. Times are processor seconds, linear algebra on one thread, so that what else the machine does counts less; whole
programs, and the peer in another process, are timed by the clock; programs of Python have their byte code kept and warm, as on a user's
machine. A floor is what the task cannot do without (drawing the normals,
reading the copies); a peer does the same task in another way. `python -m benchmarks` measures everything
again, writes this page and exits 1 when a bar is missed by more than 5 %.
"""


@dataclass
class Page:
    """Everything measured in one run."""

    measured: list[Measured] = field(default_factory=list)
    curves: list[Curve] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    load: list[float] = field(default_factory=list)

    def tables(self) -> str:
        """Return the ratios as Markdown tables."""
        lines: list[str] = []
        for group, rows in groupby(self.measured, key=lambda row: row.group):
            lines += [
                f"## {group}",
                "",
                "| what | against | ratio | quartiles | bar | met |",
                "| --- | --- | ---: | --- | --- | --- |",
            ]
            lines += [_row(row) for row in rows]
            lines.append("")
        return "\n".join(lines + [f"Skipped: {reason}\n" for reason in self.skipped])


def _row(m: Measured) -> str:
    met = ("yes" if m.met else "within 5 %" if m.near else "**no**") if m.bar else ""
    return (
        f"| {m.what} | {m.against} | {m.value:.3g} | {m.low:.3g}–{m.high:.3g} | {m.bar} | {met} |"
    )


def write_page(page: Page) -> Iterator[Path]:
    """Write the page and its charts; yield their paths."""
    text = [INTRODUCTION, _machine(page), "", page.tables()]
    if page.curves:
        text += ["## How cost grows", "", _curves_table(page.curves), ""]
        folder = DOCS / "performance"
        folder.mkdir(exist_ok=True)
        for curve in page.curves:
            path = folder / f"{curve.variable.replace(' ', '-')}.svg"
            path.write_text(_chart(curve))
            yield path
            text.append(f"![cost against {curve.variable}](performance/{path.name})")
    path = DOCS / "performance.md"
    path.write_text("\n".join(text).rstrip() + "\n")
    yield path


def _machine(page: Page) -> str:
    from importlib.metadata import version

    load = max(page.load)
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy"))
    machine = f"{os.cpu_count()} cores ({_processor()})"
    return f"Measured with Python {platform.python_version()}, {packages}, {machine}, load average up to {load:.1f}."


def _processor() -> str:
    """Return what Linux calls the processor, and its widest vectors: these decide how quick linear algebra is beside copying."""
    told = Path("/proc/cpuinfo")
    text = told.read_text() if told.exists() else ""
    model, flags = (
        re.search(rf"^{name}\s*:\s*(.*)$", text, re.MULTILINE) for name in ("model name", "flags")
    )
    vectors = [
        name
        for flag, name in (("avx512f", "AVX-512"), ("avx2", "AVX2"))
        if flags and flag in flags[1].split()
    ]
    return ", ".join([model[1].strip() if model else platform.machine(), *vectors[:1]])


def _curves_table(curves: list[Curve]) -> str:
    lines = [
        "Cost of a whole audit (copies drawn, moments gathered, every coalition's errors and error bars) against one size at a time,",
        "as a multiple of the unit named. Exponents are fitted by least squares on logarithms over the larger half of the sizes,",
        "± a standard error.",
        "",
        "| against | all else | unit of cost | exponent | bar | sizes fitted |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for curve in curves:
        b, error = curve.exponent
        sizes = ", ".join(f"{size:,.0f}" for size in curve.fitted[0])
        bar = "" if curve.at_most is None else f"≤ {curve.at_most:g}"
        lines.append(
            f"| {curve.variable} | {curve.setting} | {curve.against} | {b:.2f} ± {error:.2f} | {bar} | {sizes} |"
        )
    return "\n".join(lines)


def _chart(curve: Curve) -> str:
    """Return a log–log chart with the fitted line, as SVG."""
    import vl_convert

    sizes, costs = curve.fitted
    b, error = curve.exponent
    level = np.exp(np.mean(np.log(costs)) - b * np.mean(np.log(sizes)))
    line = pd.DataFrame(
        {"size": [sizes[0], sizes[-1]], "cost": [level * sizes[0] ** b, level * sizes[-1] ** b]}
    )
    points = pd.DataFrame({"size": curve.sizes, "cost": curve.costs})
    x = alt.X(
        "size:Q",
        scale=alt.Scale(type="log", nice=False),
        title=curve.variable,
        axis=alt.Axis(tickCount=5, format="~s"),
    )
    y = alt.Y(
        "cost:Q",
        scale=alt.Scale(type="log"),
        title=f"cost in {curve.against}",
        axis=alt.Axis(tickCount=5, format="~g"),
    )
    drawn = alt.Chart(line).mark_line(color="#b04a5a").encode(x, y) + alt.Chart(points).mark_point(
        filled=True, size=45
    ).encode(x, y)
    title = alt.TitleParams(f"exponent {b:.2f} ± {error:.2f}", subtitle=curve.setting)
    chart = drawn.properties(width=320, height=200, title=title, background="white")
    return str(vl_convert.vegalite_to_svg(chart.to_dict()))
