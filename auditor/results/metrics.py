"""The metrics of an audit: what each number means, in one place for results, reports, expectations and docs."""

from __future__ import annotations

from typing import Literal, NamedTuple

from auditor.results.in_clear import BELIEVED, KEPT, SHOWN
from auditor.text.spelling import closest


class Metric(NamedTuple):
    """What a metric's values mean.

    Attributes
    ----------
    name : str
        As in results and scenarios.
    unit : str
        Of its values.
    meaning : str
        One sentence.
    leak : 'low', 'high' or 'neither'
        Which values mean that more of the original leaks.
    """

    name: str
    unit: str
    meaning: str
    leak: Literal["low", "high", "neither"]


METRICS = {
    metric.name: metric
    for metric in (
        Metric(
            "distortion",
            "squared data units",
            "Mean squared error of the estimate, over rows and attributes.",
            "low",
        ),
        Metric("rmse", "data units", "Square root of the distortion.", "low"),
        Metric(
            "normalized_error",
            "share of variance",
            "Squared error over the data's variance, N·D/Tr(K_X) or D_j/K_jj: 0 is exact, 1 no better than guessing the mean.",
            "low",
        ),
        Metric(
            "collusion_gain",
            "share",
            "1 − D(coalition) / min D(copy alone): what pooling bought; 0 is nothing, 1 everything. For categories D is 1 − the "
            "reconstruction probability.",
            "high",
        ),
        Metric(
            "close",
            "share of records",
            "Share of the records estimated to within the attribute's tolerance, minus the share of the best guess without copies.",
            "high",
        ),
        Metric(
            "median_error_ratio",
            "ratio",
            "Median absolute error over that of the best guess without copies: 0 is exact for half of the records, 1 no help.",
            "low",
        ),
        Metric(
            "within",
            "share of records",
            "Share of the records whose value is recovered within the tolerance.",
            "high",
        ),
        Metric(
            "exact",
            "share of records",
            "Share of the records whose value is recovered exactly at its column's resolution: the estimate rounds to it.",
            "high",
        ),
        Metric(
            "exact_gain",
            "share of records",
            "Values recovered exactly beyond those by always guessing the commonest value.",
            "high",
        ),
        Metric(
            SHOWN,
            "share of records",
            "Of copies that nobody states a law of: values that a copy shows as they are, as a share of those that always naming the "
            "commonest value would miss.",
            "high",
        ),
        Metric(
            KEPT,
            "share of records",
            "Of copies from files that nobody states a law of: values that a copy, or the best guess from it, has exactly, beyond those "
            "that noise would; only where they are too many for chance.",
            "high",
        ),
        Metric(
            "records_within",
            "share of records",
            "Share of the records rebuilt as a whole: ‖x̂ − x‖ at most the tolerance times ‖x‖, over the attack's guesses.",
            "high",
        ),
        Metric(
            "most_exposed",
            "probability",
            "Chance that the record which its adversary finds most exposed is rebuilt within the tolerance.",
            "high",
        ),
        Metric(
            "rare_claimed",
            "share of records",
            "Share of the records of which the attack claims a region that holds them and, so it reckons, hardly any other record.",
            "neither",
        ),
        Metric(
            "rare_disclosed",
            "share of records",
            "Share of the records that lie in the rare region that is claimed of them.",
            "high",
        ),
        Metric(
            "error_quantile",
            "standard deviations",
            "Quantile of the records' absolute errors, as error_quantile(0.5) for the median.",
            "low",
        ),
        Metric(
            "interval_privacy",
            "standard deviations",
            "Width around an estimate that holds the true value for the share of records asked for (Agrawal and Srikant).",
            "low",
        ),
        Metric(
            "localised_width",
            "standard deviations",
            "Mean width of the interval that the attack claims holds a record's value with the confidence asked for.",
            "low",
        ),
        Metric(
            "localised_share",
            "share of records",
            "Share of the records whose value lies in the interval the attack claims.",
            "high",
        ),
        Metric(
            "candidates_left",
            "values",
            "Equally likely values that would leave as much doubt as the attack has of a record's, e^H, averaged over records; 1: none.",
            "low",
        ),
        Metric(
            "entropy_privacy",
            "standard deviations",
            "2^h(X|Y): length of an interval as uncertain as an attribute is given its copies (Agrawal and Aggarwal).",
            "low",
        ),
        Metric(
            "privacy_loss",
            "share",
            "1 − 2^−I(X;Y): share of an attribute's entropy privacy that its copies took.",
            "high",
        ),
        Metric(
            "error_floor",
            "share of variance",
            "Normalized error that is proved to be the least there can be: whatever the attack, from these copies of a table whose law is "
            "declared; or, of one attack, by a theorem on it.",
            "low",
        ),
        Metric(
            "error_without_copies",
            "share of variance",
            "Normalized error of what an adversary was not given in clear, guessed from that and from no copy: of numbers the best "
            "linear guess (in each leaf of a published tree), of categories by the adversary's own prior.",
            "neither",
        ),
        Metric(
            "error_ceiling",
            "share of variance",
            "Normalized error that a theorem says an attack does not exceed.",
            "low",
        ),
        Metric(
            "reconstruction_probability",
            "probability",
            "Posterior probability of a record's true value, averaged over records; of a statement, of what is true of the record.",
            "high",
        ),
        Metric(
            "posterior_max",
            "probability",
            "Largest posterior probability, averaged over records.",
            "high",
        ),
        Metric(
            BELIEVED,
            "share",
            "How far belief in a value rises from its share to certainty where it is true, of the value that copies give away most: rare "
            "ones hardly count in an error of all.",
            "high",
        ),
        Metric(
            "accuracy",
            "share of records",
            "Share of the records whose most probable value is the true one.",
            "high",
        ),
        Metric(
            "accuracy_gain",
            "share of records",
            "Accuracy beyond that of always guessing the most frequent value.",
            "high",
        ),
        Metric(
            "mutual_information",
            "bits",
            "Information that the copies hold of a record: mean of log₂(posterior/prior) of its true value.",
            "high",
        ),
        Metric(
            "delta_growth",
            "probability",
            "Largest growth of belief in a value from prior to posterior over the records; theory: over every outcome there can be.",
            "high",
        ),
        Metric(
            "growth_bound",
            "probability",
            "Largest growth of belief in any statement whatever the adversary believed before: (√R − 1)/(√R + 1), with R = exp(ε).",
            "high",
        ),
        Metric(
            "admissible_retention",
            "probability",
            "Largest retention of one copy at which no belief, whatever it was, can grow as the bounds asked for forbid.",
            "neither",
        ),
        Metric(
            "belief_gap",
            "squared probability",
            "Squared L2 distance of a coalition's posterior and its best copy's, averaged over records, corrected for sampling; "
            "theory: that of the computed posteriors.",
            "high",
        ),
        Metric(
            "largest_belief_gap",
            "probability",
            "Largest L2 distance of a coalition's computed posterior and its best copy's, over every outcome there can be (beyond 2^18, "
            "or with levels that are equal or 1, over those met).",
            "high",
        ),
        Metric(
            "marginal_gap",
            "squared probability",
            "Squared L2 distance of a copy's law given the original from the one stated of it, averaged over records, corrected for "
            "sampling; theory: 0.",
            "neither",
        ),
        Metric(
            "share_gap",
            "squared probability",
            "Squared L2 distance of the categories' shares in a copy, as it is, from the original's: what counting them in it costs.",
            "neither",
        ),
        Metric(
            "epsilon",
            "nats",
            "Local differential privacy of the copies: largest log-ratio of chances under two originals; of added noise under any two "
            "records within the stated bounds.",
            "high",
        ),
        Metric(
            "gaussian_dp",
            "standard deviations",
            "μ: copies of two records within the stated bounds are no easier to tell apart than N(0, 1) and N(μ, 1).",
            "high",
        ),
        Metric(
            "concentrated_dp",
            "nats",
            "ρ: zero-concentrated differential privacy of the copies of two records within the stated bounds.",
            "high",
        ),
        Metric(
            "epsilon_at_delta",
            "nats",
            "ε of (ε, δ)-differential privacy within the stated bounds, at the δ in brackets, as epsilon_at_delta(1e-05).",
            "high",
        ),
        Metric(
            "empirical_epsilon",
            "nats",
            "Lower bound on the privacy that the copies lose, by telling apart copies made of two values (exact confidence, "
            "Clopper–Pearson); theory: epsilon, which it is below.",
            "high",
        ),
        Metric(
            "empirical_gaussian_dp",
            "standard deviations",
            "Lower bound on μ, by telling apart copies made of the two records that the law tells apart best (exact confidence, "
            "Clopper–Pearson); theory: gaussian_dp, which it is below.",
            "high",
        ),
        Metric(
            "history_size",
            "elements",
            "Elements of a tuple's compressed history of releases, on average.",
            "neither",
        ),
        Metric(
            "rho_breach",
            "share of records",
            "Share of the records of which a belief rises from below ρ1 to above ρ2, or falls from above ρ2 to below ρ1.",
            "high",
        ),
        Metric(
            "disclosed",
            "share of records",
            "Records whose sensitive value the attack claims, and claims rightly.",
            "high",
        ),
        Metric(
            "disclosed_beyond_chance",
            "share of the doubt",
            "Sensitive values claimed rightly, beyond what their shares in the table are right of, as a share of the doubt these leave.",
            "high",
        ),
        Metric(
            "claimed",
            "share of records",
            "Share of the records of which the attack claims a sensitive value.",
            "neither",
        ),
        Metric(
            "learning_gain",
            "share of records",
            "Right guesses of the sensitive value beyond those by the table's shares.",
            "high",
        ),
        Metric(
            "linkage",
            "probability",
            "Chance of naming a record's own row by its quasi-identifiers, averaged over records.",
            "high",
        ),
        Metric(
            "named",
            "share of records",
            "Share of the targets whose row the attack names rightly among all rows; named(10): whose row is among the ten likeliest.",
            "high",
        ),
        Metric(
            "named_gain",
            "share of records",
            "Targets named rightly beyond chance, which is one row, or ten, of n.",
            "high",
        ),
        Metric(
            "anonymity_k",
            "records",
            "Records in the smallest class of those that look alike in the copies held.",
            "low",
        ),
        Metric(
            "anonymity_distinct",
            "values",
            "Fewest distinct sensitive values in such a class: distinct ℓ.",
            "low",
        ),
        Metric(
            "anonymity_entropy",
            "values",
            "exp of the least entropy of the sensitive values in such a class: entropy ℓ.",
            "low",
        ),
        Metric(
            "anonymity_alpha",
            "share",
            "Largest share of one sensitive value in such a class: α.",
            "high",
        ),
        Metric(
            "anonymity_t",
            "share",
            "Largest earth mover's distance of such a class's sensitive values from the table's: t.",
            "high",
        ),
        Metric(
            "anonymity_recursive",
            "ratio",
            "Least (r_ℓ + r_{ℓ+1} + …)/r_1 of the counts of sensitive values in such a class, as anonymity_recursive(2): recursive "
            "(c, ℓ)-diversity for every c above its inverse; 0: for none.",
            "low",
        ),
        Metric(
            "anonymity_confidence",
            "share",
            "Largest share of one confidential value in such a class: h of privacy templates.",
            "high",
        ),
        Metric(
            "anonymity_range",
            "share",
            "Least range of the sensitive values in such a class, over the table's: e of (k, e).",
            "low",
        ),
        Metric(
            "anonymity_size",
            "records",
            "Mean number of records that a record cannot be told from, itself among them.",
            "low",
        ),
        Metric(
            "geometry_distances",
            "share",
            "Spread of the copy's distances over the original's: std over mean; 0 is none.",
            "neither",
        ),
        Metric(
            "geometry_neighbours",
            "share of records",
            "Share of the records that keep their nearest neighbour in the copy.",
            "neither",
        ),
        Metric(
            "geometry_clusters",
            "adjusted Rand index",
            "Likeness of 4-means clusters in the copy and in the original.",
            "neither",
        ),
        Metric(
            "dissimilarity",
            "correlation",
            "Root mean square difference between the correlations of noise and data: 0 is noise correlated as the data are.",
            "neither",
        ),
        Metric(
            "estimated_retention",
            "probability",
            "Of a copy from a file: retention of the uniform law that is most likely to have made it of the original. Without a stated law "
            "attacks use one that is learnt from original and copies, which is what an insider could know.",
            "high",
        ),
        Metric(
            "off_uniform",
            "probability",
            "Largest difference between a copy's chances given the original and those of the uniform law of its estimated retention.",
            "neither",
        ),
        Metric(
            "off_law",
            "share",
            "How far copies from files are from a scheme's law at the levels estimated of them: for numbers the largest deviation of their "
            "noise's covariance, over its standard deviations; for categories the share of records in which two copies agree too often "
            "or too seldom.",
            "neither",
        ),
        Metric(
            "estimated_level",
            "share of variance",
            "Of a copy from a file: variance of its difference from the original over the data's, averaged over attributes. Without a "
            "stated law attacks use the covariance estimated beside it, which is what an insider could know.",
            "low",
        ),
        Metric(
            "noise_on_data",
            "correlation",
            "Largest correlation of an attribute with what copies from files add to any: 0 is noise that does not depend on the data.",
            "neither",
        ),
        Metric(
            "seconds",
            "seconds",
            "Processor time to make the copies, or the last request of them.",
            "neither",
        ),
    )
}

ALWAYS = ("distortion", "rmse", "normalized_error", "collusion_gain")
"""Measured for every cell of a numeric table; they cost nothing beyond the moments."""


MEASURED = {
    "closeness": ("close", "median_error_ratio"),
    "within": ("within",),
    "exact": ("exact", "exact_gain"),
    "records-within": ("records_within", "most_exposed"),
    "error-quantiles": ("error_quantile",),
    "interval-privacy": ("interval_privacy", "localised_width", "localised_share"),
    "candidates-left": ("candidates_left",),
    "entropy-privacy": ("entropy_privacy", "privacy_loss"),
    "error-bounds": ("error_floor", "error_ceiling"),
    "dissimilarity": ("dissimilarity",),
    "anonymity": (
        "anonymity_k",
        "anonymity_distinct",
        "anonymity_entropy",
        "anonymity_alpha",
        "anonymity_t",
        "anonymity_size",
        "anonymity_recursive",
        "anonymity_confidence",
        "anonymity_range",
    ),
    "geometry": ("geometry_distances", "geometry_neighbours", "geometry_clusters"),
    "empirical-epsilon": ("empirical_epsilon", "empirical_gaussian_dp"),
    "belief-gap": ("belief_gap", "largest_belief_gap"),
    "marginal-gap": ("marginal_gap",),
    "share-gap": ("share_gap",),
    "delta-growth": ("growth_bound",),
    "rho-breach": ("rho_breach",),
    "history-size": ("history_size",),
    "seconds": ("seconds",),
    "bounds": ("gaussian_dp", "concentrated_dp", "epsilon_at_delta"),
}
"""The metrics that an entry of ``measures:`` measures; ``bounds`` is none, but stands in a section
of its own, as ``utility`` does."""
MEASURED_BY = {metric: entry for entry, found in MEASURED.items() for metric in found}
"""Which entry of ``measures:`` a metric needs."""


def measured_by(name: str) -> str | None:
    """Return the entry of ``measures:``, the section ``utility``, or ``bounds`` of the data, that a metric needs; None: always measured."""
    return "utility" if name.startswith("utility_") else MEASURED_BY.get(base(name))


GUARANTEES = ("gaussian_dp", "concentrated_dp", "epsilon", "epsilon_at_delta")
"""Measured where ``data: bounds:`` states by how much a record may change; ``epsilon`` of
categories always."""
EMPIRICAL = ("empirical_gaussian_dp", "empirical_epsilon")
"""What audits find of them, from below."""


LOWEST, HIGHEST = 0.05, 0.95
"""Quantiles of errors beyond these are withheld: they come too near single records."""


def base(name: str) -> str:
    """Return a metric's name without what tells its variants apart: ``within`` of ``within(0.1 std)``."""
    return name.partition("(")[0]


def is_metric(name: str) -> bool:
    """Whether a name is a metric's; ``utility_…`` names belong to whoever measures utility."""
    return base(name) in METRICS or name.startswith("utility_")


RENAMED = {"learnt": "disclosed"}
"""Names that scenarios and results of earlier versions have: they are still read."""


def canonical(name: str) -> str:
    """Return the metric's name for a spelling with hyphens, or for the name that it had."""
    stem, bracket, rest = name.partition("(")
    stem = stem.replace("-", "_")
    return RENAMED.get(stem, stem) + bracket + rest


def nearest(name: str) -> list[str]:
    """Return close metric names."""
    return closest(canonical(name), METRICS)
