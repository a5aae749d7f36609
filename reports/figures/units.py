"""Titles of axes and charts: metric and unit."""

from __future__ import annotations

from auditor.results.metrics import METRICS, base
from auditor.results.renderer import clean

from .along import swept_paths
from .guesses import TRUTH
from .reading import EVERYTHING, Reading
from .series import attribute_text

UTILITIES = {
    "utility_mean_error": (
        "standard deviations",
        "root mean square difference between the means of copy and original",
    ),
    "utility_covariance_error": (
        "share",
        "‖K_Y − K_X‖ / ‖K_X‖ (Frobenius), of attributes in units of their standard deviation",
    ),
    "utility_correlation_error": (
        "correlation",
        "root mean square difference between the correlations of copy and original",
    ),
}
"""Unit and meaning of the utility metrics without a model."""
LOSS, MODEL = "utility_loss_", "utility_"
PATHS = {
    "data.rows": "records",
    "data.spectrum.attributes": "attributes",
    "schemes[*].levels.count": "copies released",
    "replicates": "replicates",
}
"""Words for the most frequent swept paths."""
TITLES = {
    "collusion": "Collusion curves",
    "map": "Coalition map",
    "errors": "Error distributions",
    "frontier": "Privacy and utility",
}
ALONG = {"sweep": "Sweep of", "runtime": "Runtime against"}
"""Chart titles by key."""


def unit(metric: str, reading: Reading) -> str:
    """Return a metric's unit; standardized tables use standard deviations."""
    if metric in UTILITIES:
        return UTILITIES[metric][0]
    if metric.startswith(MODEL):
        return "accuracy or R² lost" if metric.startswith(LOSS) else "accuracy or R²"
    known = METRICS.get(base(metric))
    stated = known.unit if known else ""
    return stated.replace("data units", data_unit(reading)).replace(
        "squared standard deviations", "variances"
    )


def data_unit(reading: Reading) -> str:
    """Return the unit of reconstruction errors."""
    data = reading.result.scenario.get("data")
    return (
        "standard deviations"
        if isinstance(data, dict) and data.get("standardize")
        else "data units"
    )


def utility_meaning(metric: str) -> str:
    """Describe a utility metric."""
    if metric in UTILITIES:
        return UTILITIES[metric][1]
    if metric.startswith(LOSS):
        name = metric.removeprefix(LOSS).replace("_", " ")
        return f"accuracy (of a class) or R² (of a number) of a {clean(name)} trained on the original, less that of one trained on the copy"
    name = metric.removeprefix(MODEL).replace("_", " ")
    return f"accuracy (of a class) or R² (of a number) of a {clean(name)} trained on the copy, by cross-validation"


def metric_title(metric: str, reading: Reading, attribute: str = EVERYTHING) -> str:
    """Return a metric's axis title: ``rmse of age (data units)``."""
    of = "" if attribute == EVERYTHING else f" of {attribute_text(attribute)}"
    what = unit(metric, reading)
    return clean(f"{metric}{of} ({what})" if what and what != metric else f"{metric}{of}")


def path_title(path: str) -> str:
    """Return a swept path's axis title: ``records (data.rows)``."""
    return clean(f"{PATHS[path]} ({path})" if path in PATHS else path)


def chart_title(reading: Reading, key: str) -> str:
    """Return the title of a chart and its section."""
    what, _, place = key.rpartition("-")
    if what in ALONG:
        path = swept_paths(reading)[int(place)]
        words = f": {PATHS[path]}" if PATHS.get(path, path) != path else ""
        return f"{ALONG[what]} {clean(path)}{words}"
    if key == "by-size":
        return f"{'Guesses and beliefs' if any(metric == TRUTH for _, metric, _ in reading.keys()) else 'Other measures'} by copies pooled"
    return TITLES[key]
