"""Names of adversaries, attributes, metrics and axes."""

from __future__ import annotations

from auditor.results.metrics import METRICS, base
from auditor.results.renderer import clean

from .figures import clipped
from .reading import EVERYTHING, Reading, Setting
from .strongest import guesses_categories

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


def attribute_text(attribute: str) -> str:
    """Name an attribute; ``*`` means all attributes."""
    return "all attributes" if attribute == EVERYTHING else attribute


OF_THE_AUDIT = {
    "every-cell": "the best line through the originals, on every cell held",
    "fitted-to-originals": "the best curve through the originals, for who knows how copies were made",
    "coincidences": "least squares, for who knows which cells carry the same noise",
    "noise-density": "Bayes' rule, for who knows the density of the noise",
    "known-generator": "the noise drawn again from its seed",
}
"""Estimates by the audit itself from both originals and copies."""


def knows(knowledge: str | None, *, attack: str | None = None, categories: bool = False) -> str:
    """Describe an adversary's knowledge; only ``perfect`` is spelled out."""
    if attack in OF_THE_AUDIT:
        return OF_THE_AUDIT[attack]
    if knowledge == "perfect":
        return (
            "knows every category's share exactly"
            if categories
            else "knows means and correlations exactly"
        )
    return f"{clipped(str(knowledge), 80)} knowledge"


def label(reading: Reading, setting: Setting) -> str:
    """Name an adversary: ``llse, knows means and correlations exactly``."""
    return _named(reading, setting, "")


def phrase(reading: Reading, setting: Setting) -> str:
    """Name an adversary in a sentence, with ``which knows …``."""
    return _named(reading, setting, "which ")


def _named(reading: Reading, setting: Setting, joined: str) -> str:
    if setting.attack is None:
        return "the release itself"
    said = knows(
        setting.knowledge, attack=setting.attack, categories=guesses_categories(reading, setting)
    )
    return f"{clipped(setting.attack, 60)}, {joined if said.startswith('knows') else ''}{said}"
