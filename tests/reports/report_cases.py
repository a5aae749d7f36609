import itertools
import math
import random
import re
from dataclasses import replace

from auditor.results.model import AuditResult, PluginSummary, Provenance, Reference, SchemeSummary
from auditor.results.records import (
    Advice,
    AttributeSummary,
    DataSummary,
    Distribution,
    ExpectationRecord,
    Exposed,
    Measurement,
    Picture,
    Tried,
)
from auditor_reports.charts import inflated
from tests.audited import record

LEVELS = (0.46, 0.25, 0.81, 0.64, 1.0)
SCHEMES = ("independent", "correlated", "linearly-dependent", "corner-wave")
KNOWLEDGE = ("perfect", "estimated(rows=400)")
ATTRIBUTES = ("age", "salary")
ROWS = 20_000
VARIANCE = {"age": 180.0, "salary": 4.1e8}
UNSUITED = "distribution analysis needs white noise; linearly-dependent noise repeats one draw"


def llse_error(scheme, levels):
    if scheme == "linearly-dependent" and len(set(levels)) > 1:
        return 3e-17  # rounding, as a solver leaves it
    if scheme in ("corner-wave", "linearly-dependent"):
        return min(levels) / (1 + min(levels))
    information = sum(1 / level for level in levels) * (1.12 if scheme == "independent" else 1.0)
    return 1 / (1 + information)


def error_of(scheme, attack, levels, knowledge):
    base = llse_error(scheme, levels) if attack == "llse" else min(levels)
    return base * (1.0 if knowledge == "perfect" or attack == "ndr" else 1.012)


def coalitions_of(kind, count):
    copies = range(1, count + 1)
    if kind == "all":
        return [c for size in copies for c in itertools.combinations(copies, size)]
    prefixes = [tuple(range(1, size + 1)) for size in copies]
    return list(dict.fromkeys([*((copy,) for copy in copies), *prefixes]))


def measurement(**values):
    blank = dict.fromkeys(Measurement._fields) | {"sweep": {}, "levels": ()}
    blank |= {
        "coalition": (), "replicate": 1, "attribute": "*", "status": "ok", "error_bar": "none",
    }  # fmt: skip
    return Measurement(**(blank | values))


def error(attribute, value, half=0.001, **changes):
    """A normalized error with its 95 % interval."""
    low, high = (None, None) if half is None else (value - half, value + half)
    interval = {"attribute": attribute, "levels": (1.0,), "ci_low": low, "ci_high": high}
    return record(value, None if half is None else half / 1.96, **(interval | changes))


def audited(records, **updates):
    """An audit with these records only."""
    schemes = [{"name": "correlated", "id": "s"}]
    scenario = {"schema": 1, "title": "t", "schemes": schemes, "knowledge": ["perfect"]}
    blank = {"distributions": [], "releases": [], "expectations": [], "scenario": scenario}
    return quickstart().model_copy(update=blank | {"measurements": list(records)} | updates)


def with_bar(value, error, theory):
    return {
        "value": value, "std_error": error, "ci_low": value - 1.96 * error, "ci_high": value + 1.96 * error,
        "theory": theory, "error_bar": "closed-form",
    }  # fmt: skip


class Case:
    """Builds one realistic audit; every choice is an argument."""

    def __init__(
        self,
        *,
        coalitions="all",
        rows=ROWS,
        attributes=ATTRIBUTES,
        schemes=SCHEMES,
        levels=LEVELS,
        replicates=2,
        sweep=None,
    ):
        self.coalitions, self.rows, self.attributes, self.schemes = (
            coalitions, rows, attributes, schemes,
        )  # fmt: skip
        self.levels, self.replicates, self.sweep = levels, replicates, sweep or {}
        self.plugin = dict(zip(schemes, SCHEMES, strict=False))
        self.noise = random.Random(2012)

    def measurements(self):
        records = []
        for scheme, knowledge, attack in itertools.product(
            self.schemes, KNOWLEDGE, ("ndr", "llse")
        ):
            for replicate in range(1, self.replicates + 1):
                errors = {}
                draw = self.noise.gauss(0, 1)
                for coalition in coalitions_of(self.coalitions, len(self.levels)):
                    records += self.cell(
                        scheme, knowledge, attack, coalition, replicate, draw, errors
                    )
        return records

    def cell(
        self, scheme, knowledge, attack, coalition, replicate, draw,
        errors,
    ):  # fmt: skip
        levels = tuple(self.levels[copy - 1] for copy in coalition)
        theory = error_of(self.plugin[scheme], attack, levels, knowledge)
        std_error = theory * math.sqrt(2 / self.rows)
        known = knowledge == "perfect"
        key = {
            "sweep": self.sweep, "scheme": scheme, "knowledge": knowledge, "attack": attack, "coalition": coalition,
            "levels": levels, "replicate": replicate,
        }  # fmt: skip
        records = []
        for index, attribute in enumerate(("*", *self.attributes)):
            tilt = (1.0, 1.04, 0.96)[min(index, 2)]
            value, exact = (theory + draw * std_error) * tilt, theory * tilt if known else None
            variance = VARIANCE["salary"] if index == 2 else VARIANCE["age"]
            records.append(
                measurement(
                    **key, attribute=attribute, metric="normalized_error",
                    **with_bar(value, std_error * tilt, exact),
                )
            )  # fmt: skip
            bar = with_bar(
                value * variance, std_error * variance, None if exact is None else exact * variance
            )
            records.append(measurement(**key, attribute=attribute, metric="distortion", **bar))
            records.append(
                measurement(**key, attribute=attribute, metric="rmse", value=math.sqrt(value * variance)),
            )  # fmt: skip
        errors[coalition] = records[0].value or 0.0
        if len(coalition) > 1:
            best = min(errors[(copy,)] for copy in coalition)
            gain = 1 - errors[coalition] / best if best else 0.0
            at_best = min(
                error_of(self.plugin[scheme], attack, (level,), knowledge) for level in levels
            )
            bar = with_bar(gain, 0.0008, 1 - theory / at_best if known else None)
            records.append(measurement(**key, metric="collusion_gain", **bar))
        return records

    def distributions(self):
        found = []
        width = 0.1
        for scheme, coalition in itertools.product(
            self.schemes, ((1,), tuple(range(1, len(self.levels) + 1)))
        ):
            error = llse_error(
                self.plugin[scheme], tuple(self.levels[copy - 1] for copy in coalition)
            )
            for attribute in self.attributes[:2]:
                scale = math.sqrt(max(error, 1e-9) * VARIANCE["age"])
                edges = tuple(width * step * math.sqrt(VARIANCE["age"]) for step in range(31))
                inside = [math.erf(edge / scale / math.sqrt(2)) for edge in edges]
                shares = tuple(b - a for a, b in itertools.pairwise(inside))
                found.append(Distribution(
                    self.sweep, scheme, "perfect", "llse", coalition, 1, attribute, edges, shares,
                    1 - inside[-1],
                ))  # fmt: skip
        return found

    def gaps(self):
        reason = {
            "status": "not-applicable", "reason": UNSUITED, "knowledge": "perfect",
            "attack": "distribution-analysis",
        }  # fmt: skip
        return [measurement(
            sweep=self.sweep, scheme=self.schemes[2], metric="normalized_error", coalition=(1,),
            levels=(0.46,), **reason,
        )]  # fmt: skip

    def result(self, *, title="Five recipients of the census extract", name="quickstart"):
        return AuditResult(
            name=name,
            scenario={
                "schema": 1, "title": title, "cite": ["li2012"], "seed": 2012,
                "data": {"source": "cps", "columns": list(self.attributes)},
                "schemes": [{"name": self.plugin[s], "id": s, "levels": list(self.levels)} for s in self.schemes],
                "knowledge": ["perfect", {"estimated": {"rows": 400}}], "coalitions": [self.coalitions],
                "attacks": ["ndr", "llse", "distribution-analysis"], "replicates": self.replicates,
                "expect": [{"no-collusion-gain": {"scheme": self.schemes[-1]}}],
            },
            provenance=Provenance(
                versions={"auditor": "0.1.0", "numpy": "2.1.0", "python": "3.11.2"}, seed=2012, fingerprint="sha256:5a1e0c77",
                platform="Linux x86_64", start="2026-02-03T10:11:12+00:00", duration=3.21,
                command="auditor run quickstart.yaml --seed 2012",
            ),
            data=[self.data()],
            releases=[
                SchemeSummary(
                    sweep=self.sweep, scheme=s, plugin=self.plugin[s], levels=list(self.levels),
                    summary=f"Noise made the {self.plugin[s]} way", claims="no coalition gains" if s == self.schemes[-1] else "",
                )
                for s in self.schemes
            ],
            plugins=self.plugins(),
            references=[
                Reference(key="li2012", text="Li, Chen, Li & Zhang (2012). Enabling multilevel trust. TKDE 24(9). https://doi.org/10.1109/TKDE.2011.124")
            ],
            expectations=self.expectations(),
            measurements=[*self.measurements(), *self.gaps()],
            distributions=self.distributions(),
            pictures=[
                Picture(
                    self.sweep, scheme, "perfect", "llse", (1, 2), self.attributes[0], 1, 1000, 4, 0.5,
                    ((0, 1, 0.2), (1, 3, 0.5), (3, 4, 0.3)), ((0, 2, 0.6), (2, 4, 0.4)), ((0, 4, 1.0),),
                    ((0, 1, 0, 4, 0.2), (1, 3, 0, 4, 0.5), (3, 4, 0, 4, 0.3)),
                )
                for scheme in self.schemes
            ],
        )  # fmt: skip

    def data(self):
        return DataSummary(
            source="cps", rows=self.rows, correlation=[[1.0, 0.3], [0.3, 1.0]], fingerprint="sha256:5a1e0c77", licence="CC0",
            attributes=[AttributeSummary(name=n, mean=41.2, variance=VARIANCE.get(n, 180.0)) for n in self.attributes],
            description="Census extract", sweep=self.sweep,
        )  # fmt: skip

    def plugins(self):
        attacks = {
            "ndr": ("Takes the least perturbed copy as it is", ""),
            "llse": ("Joint linear least-squares estimate from all copies held", "the noise law and the data's moments are known"),
            "distribution-analysis": ("Rebuilds each value from its prior", "white noise"),
        }  # fmt: skip
        return [
            *(PluginSummary(kind="attack", id=a, name=a, summary=s, assumes=w, reference="li2012, eq. 6") for a, (s, w) in attacks.items()),
            *(PluginSummary(kind="scheme", id=s, name=self.plugin[s], summary=f"The {s} scheme", assumes="Gaussian noise") for s in self.schemes),
        ]  # fmt: skip

    def expectations(self):
        wave, fresh = self.schemes[-1], self.schemes[1]
        return [
            ExpectationRecord(expectation="no-collusion-gain", where={"scheme": wave}, status="holds", observed=0.0004, bound=0.01,
                              why="26 coalitions, 4 adversaries: every gain is below 1 % (Holm, p < 0.001)"),
            ExpectationRecord(expectation="collusion-gain", where={"scheme": fresh, "coalition": "all"}, status="fails", observed=0.53,
                              bound=0.9, why="observed 0.53 ± 0.002, and 0.9 was asked for"),
            ExpectationRecord(expectation="ranking", where={"attack": "llse"}, status="undecided", observed=None, bound=[0.0, 0.1],
                              why="the interval reaches over the bound; 31,000 rows would decide"),
        ]  # fmt: skip


def quickstart():
    return Case().result()


def prefixes_only():
    return Case(coalitions="prefixes").result(name="prefixes")


def failed():
    """One attack fails against one scheme."""
    whole = quickstart()
    broken = measurement(
        scheme="independent", knowledge="perfect", attack="svd-filter", coalition=(1, 2), levels=(0.46, 0.25), metric="normalized_error",
        status="failed", reason="LinAlgError: SVD did not converge",
    )  # fmt: skip
    return whole.model_copy(
        update={"name": "failed", "measurements": [*whole.measurements, broken]}
    )


def swept():
    points = [
        Case(coalitions="prefixes", rows=rows, sweep={"data.rows": rows})
        for rows in (1000, 4000, 16000, 64000)
    ]
    audits = [point.result(title="More rows", name="sweep") for point in points]
    timings = [
        measurement(
            sweep={"data.rows": point.rows}, scheme=scheme, metric="seconds", coalition=(1, 2, 3, 4, 5), levels=LEVELS,
            value=point.rows * 1e-6 * (1 + place), std_error=1e-4, ci_low=point.rows * 9e-7, ci_high=point.rows * 5e-6, error_bar="replicates",
        )
        for point in points for place, scheme in enumerate(SCHEMES)
    ]  # fmt: skip
    return audits[0].model_copy(
        update={
            "data": [item for audit in audits for item in audit.data],
            "releases": [item for audit in audits for item in audit.releases],
            "measurements": [item for audit in audits for item in audit.measurements] + timings,
            "distributions": [item for audit in audits for item in audit.distributions],
        }
    )


HOSTILE_COLUMNS = (
    "<img src=x onerror=alert(1)>", "a,b", '"', "=cmd()", "x" * 200, "גיל ושכר", "tab\tand\nline",
    "[red]rich[/red]", "{{7*7}}",
)  # fmt: skip
HOSTILE_TITLE = "</script><script>alert('title')</script>\u202e{{7*7}}"


def unpacked(page):
    return re.sub(
        r'<script type="application/x-deflate"[^>]*>[^<]*</script>',
        lambda found: inflated(found.group()),
        page,
    )


def hostile():
    """Names that try to be markup, formulas, templates, code."""
    schemes = (
        "</script><script>alert(2)</script>", "correlated' onmouseover='alert(3)",
        '=HYPERLINK("x")', "corner-wave]]>",
    )  # fmt: skip
    case = Case(attributes=HOSTILE_COLUMNS, schemes=schemes, coalitions="prefixes", replicates=1)
    whole = case.result(title=HOSTILE_TITLE, name="<b>evil</b>")
    swap = {"llse": "llse</script><img src=x onerror=alert(4)>"}
    return whole.model_copy(update={
        "measurements": [r._replace(attack=swap.get(r.attack or "", r.attack)) for r in whole.measurements],
        "references": [Reference(key="<x>", text="javascript:alert(5) <script>alert(6)</script>")],
    })  # fmt: skip


NASTY = "<b>pay</b>\x1b[31m`|"
"""A column's name that would be markup, steer a terminal or end a cell."""


def tried(scheme, level, unknown, verdict="holds", pooling=0.0):
    exposed = Exposed(unknown, 0.012, "mixture-estimate", NASTY, (1,))
    return Tried(
        scheme, (level, 2 * level, 4 * level), unknown + 0.02, exposed, verdict, True, pooling,
        (0.4, 0.7, 1.2),
    )  # fmt: skip


def advice():
    taken, weaker = tried("corner-wave", 1.21, 0.52), tried("corner-wave", 1.0, 0.49, "fails")
    paper = replace(
        tried("independent", 9.0, 0.5, "undecided", 0.2), exposed=None, losses=(3000.0,) * 3
    )
    scenario = {
        "schema": 1, "title": "t", "seed": 1, "data": {"source": "staff.csv", "columns": [NASTY]},
        "attacks": "all",
    }  # fmt: skip
    return Advice(
        "staff.csv", 1000, 2000, 10, 0.5, 1e-5, "mean", "how much the standard error of a mean grows", "σ² from 0.001 to 1000",
        (weaker, taken, tried("correlated", 2.1, 0.53, "undecided", 0.19), paper), taken, weaker, "a factor of 1.2 in σ²", scenario,
        "auditor perturb staff.csv --scheme corner-wave --levels 1.21,2.42,4.84 --output copies", (f"column {NASTY!r} left out",),
    )  # fmt: skip
