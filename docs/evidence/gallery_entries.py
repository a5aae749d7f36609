"""Entries of the gallery: figures of the papers and our pictures."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Picture:
    """One chart: a method of ``result.plot`` or a drawing, with its choices."""

    plot: str
    caption: str
    choices: tuple[tuple[str, str], ...] = ()

    def name(self, entry: str) -> str:
        """Return the file's name, from the choices."""
        told = "-".join([entry, self.plot, *(value for _, value in self.choices)])
        plain = "".join(c if c.isascii() and (c.isalnum() or c == "-") else "-" for c in told)
        return "-".join(part for part in plain.split("-") if part)[:90] + ".png"


@dataclass(frozen=True)
class Entry:
    """One figure, table or worked example of a paper.

    ``scenario`` is empty for a picture without an audit.
    """

    scenario: str
    title: str
    claims: tuple[str, ...]
    pictures: tuple[Picture, ...]


LI, HUANG = "Li, Chen, Li & Zhang (2012)", "Huang, Du & Chen (2005)"
XIAO, LIU = "Xiao, Tao & Chen (2009)", "Liu, Giannella & Kargupta (2008)"
LEVEL = ("path", "schemes[0].levels[0]")


def of(measure: str, *more: tuple[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the choice of a metric over all attributes."""
    return (("figure", f"{measure}, all attributes"), *more)


LI2012 = (
    Entry(
        "li2012-example",
        f"{LI}, sections 4.2 and 4.3: Alice and Bob",
        (
            "Alone, Alice (σ² = 1) leaves 0.5 and Bob (σ² = 4) leaves 0.8 unknown.",
            "Together: 4/9 from independent noise, 0 from linearly dependent noise, 0.5 (Alice's own) from corner-wave noise.",
        ),
        (Picture("collusion", "One copy, and both pooled, under the three kinds of noise"),),
    ),
    Entry(
        "",
        f"{LI}, Figure 1: distribution of Age and Income",
        (
            "The census extract cannot be redistributed: Table 3 gives its moments, Figure 1 its look.",
        ),
        (
            Picture(
                "census",
                "The stand-in `census-like`: the table's moments exactly, and the figure's look",
            ),
        ),
    ),
    Entry(
        "li2012-fig2",
        f"{LI}, Figure 2: error against the number of copies",
        (
            "Independent noise: pooling copies reduces the normalized estimation error dramatically.",
            "The proposed scheme: the curve of attacks with all copies overlaps that of the least perturbed copy.",
            "With moments estimated from few rows the error flattens and even slightly increases; more samples perform better.",
        ),
        (
            Picture("collusion", "Perfect knowledge, Age", (("attribute", "age"),)),
            Picture("collusion", "Perfect knowledge, Income", (("attribute", "income"),)),
            Picture(
                "collusion",
                "Moments estimated from 400 rows without structure, Age: with more copies the error rises again",
                (
                    ("attribute", "age"),
                    (
                        "adversary",
                        "llse, knows means and correlations from 400 records, without structure",
                    ),
                ),
            ),
        ),
    ),
    Entry(
        "li2012-fig3",
        f"{LI}, Figure 3: errors of single records",
        (
            "Independent noise: as M grows, the cumulative histograms approach the vertical axis.",
            "The proposed scheme: the cumulative histograms are almost identical for all M, and approach 1 much slower.",
        ),
        (
            Picture("errors", "5 copies pooled, Age", (("coalition", "{1–5}"),)),
            Picture("errors", "30 copies pooled, Age", (("coalition", "{1–30}"),)),
        ),
    ),
    *(
        Entry(
            scenario,
            f"{LI}, Figure 4: usefulness of the copies ({name})",
            (
                "At all noise levels, the accuracies on data perturbed by either scheme are identical.",
            ),
            tuple(
                Picture("frontier", f"{model} against error", (("figure", figure),))
                for figure, model in (
                    ("utility_decision_tree", "accuracy of a tree"),
                    ("utility_svm_rbf", "accuracy of an SVM"),
                )
            ),
        )
        for scenario, name in (("li2012-fig4", "Iris"),)
    ),
    Entry(
        "li2012-fig5",
        f"{LI}, Figure 5: time to make copies on demand",
        (
            "The runtime increases only about linearly in M, far below the bound of M³.",
            "The difference from the independent noise scheme is considerably small.",
        ),
        (
            Picture(
                "runtime",
                "Seconds for the last M − L copies of 100,000 records, on the machine that made this page",
            ),
        ),
    ),
)

DISSIMILARITY = ("Dissimilarity (the paper's Definition 8.1)",)

HUANG2005 = tuple(
    Entry(
        f"huang2005-exp{number}{suffix}",
        f"{HUANG}, Figure {number}: {title}{', closed forms' if suffix else ''}",
        exact if suffix else claims,
        (
            Picture("sweep", f"Root mean squared error of each attack, {known}", of("rmse")),
            *(
                Picture("sweep", f"{axis}, the figure's own axis", of("dissimilarity"))
                for axis in DISSIMILARITY
                if number == 4
            ),
        ),
    )
    for number, title, claims, exact in (
        (
            1,
            "number of attributes",
            (
                "All correlation-based reconstructions have lower errors when the number of attributes increases.",
                "UDR is not sensitive to the change of correlations; BE-DR performs better than PCA-DR and SF.",
            ),
            ("Where covariances are known BE-DR is better than UDR, too, at every point.",),
        ),
        (
            2,
            "number of principal components",
            (
                "SF, PCA-DR and BE-DR achieve better accuracy when the number of principal components becomes less.",
                "BE-DR is always better.",
            ),
            ("BE-DR is always better, where covariances are known.",),
        ),
        (
            3,
            "eigenvalues of the non-principal components",
            (
                "When these eigenvalues become larger, SF, PCA-DR and BE-DR all become worse, and after certain points SF and PCA-DR are "
                "even worse than UDR.",
                "BE-DR converges to UDR when the correlations of the data are low.",
            ),
            ("BE-DR is always better, where covariances are known.",),
        ),
        (
            4,
            "noise that is correlated as the data are",
            (
                "When the dissimilarity of noise and data increases, privacy becomes worse, with SF the exception.",
                "Independent noise, the figure's vertical line, is at 0.5 here; the figure's axis does not begin at 0, as 1,000 rows have "
                "not quite the correlations that noise and data are given.",
            ),
            (
                "Noise with the data's correlations: full knowledge has no gain over one attribute at a time.",
            ),
        ),
    )
    for suffix, known in (
        ("", "all estimated from the 1,000 released rows"),
        ("-exact", "covariances known; theory dashed"),
    )
)

XIAO2009 = (
    Entry(
        "xiao2009-examples",
        f"{XIAO}, Figure 1 and Examples 1 and 2: HIV, Alice and Bob",
        (
            "By sharing, recipients gain nothing more than having only the data of the one with the highest retention probability.",
            "A copy at 20 % shows HIV with probability 28 % when it was HIV, of ten diseases.",
        ),
        (
            Picture(
                "collusion",
                "Share of the records that the best guess gets right",
                (("figure", "accuracy"),),
            ),
        ),
    ),
    Entry(
        "",
        f"{XIAO}, Figure 4: distribution of sensitive values",
        (
            "Uniform, Gaussian, Salary and Occupation; the last two are of a census extract that cannot be redistributed.",
        ),
        (Picture("values", "The four sources that stand in for them"),),
    ),
    Entry(
        "xiao2009-fig5",
        f"{XIAO}, Figure 5: effect of collusion",
        (
            "What Alice, Bob and Charlie believe together (30 %, 10 %, 50 % retained, asked for in this order) is what Charlie believes "
            "alone, for all four distributions.",
        ),
        (
            Picture(
                "sweep",
                "Squared distance between the beliefs of all three and of Charlie alone",
                of("belief_gap"),
            ),
        ),
    ),
    Entry(
        "xiao2009-fig6",
        f"{XIAO}, Figure 6: each copy alone is conventional uniform perturbation",
        ("The empirical values perfectly match the theoretical ones, for all four distributions.",),
        (
            Picture(
                "sweep",
                "Squared distance of empirical and theoretical values, corrected for sampling",
                of("marginal_gap"),
            ),
            Picture(
                "sweep",
                "Accuracy of the best guess from the best copy, by implementation; short lines: theory",
                of("accuracy"),
            ),
        ),
    ),
    Entry(
        "xiao2009-fig7",
        f"{XIAO}, Figure 7: failure of independent perturbation",
        (
            "Independent perturbation: the average reconstruction probability quickly surges to nearly 1 after only 30 releases.",
            "The multi-level algorithm retains about 30 %.",
        ),
        (
            Picture(
                "sweep",
                "Reconstruction probability by the number of recipients who pool",
                of("reconstruction_probability"),
            ),
        ),
    ),
    Entry(
        "xiao2009-fig8",
        f"{XIAO}, Figure 8: overhead of multi-pert",
        (
            "A tuple's compressed history stays small: below 1 + ln(p_max/p_min) elements.",
            "One more release costs the same, whether 10 or 10,000 went before.",
        ),
        (
            Picture(
                "sweep",
                "Elements of a tuple's history, on average; theory dashed",
                of("history_size"),
            ),
            Picture("runtime", "Seconds of one more release, on the machine that made this page"),
        ),
    ),
)

LIU2008 = (
    Entry(
        "",
        f"{LIU}, Figure 12.1: Wigner's semicircle law",
        (
            "The eigenvalues of (A + Aᵀ)/(2√(2p)) for a large random p × p matrix A follow a semicircle.",
        ),
        (
            Picture(
                "wigner", "Eigenvalues for p = 500, entries standard normal, and the semicircle"
            ),
        ),
    ),
    Entry(
        "survey-privacy-measures",
        f"{LIU}, section 3.7: measures of privacy and what is recovered",
        (
            "How interval and entropy measures of privacy relate to the accuracy of reconstruction is not clear.",
        ),
        (
            Picture(
                "sweep",
                "What attacks on the copy leave unknown, by level and shape",
                of("normalized_error", LEVEL),
            ),
            Picture(
                "sweep",
                "Share of the privacy that the copy took, by level and shape",
                of("privacy_loss", LEVEL),
            ),
        ),
    ),
    Entry(
        "survey-rotation",
        f"{LIU}, section 4.1: a rotated table against a few known records (equation 12.6)",
        (
            "Who knows p linearly independent records and their rows rebuilds a record within ε of its length with a probability that "
            "rises with p.",
        ),
        (
            Picture(
                "sweep",
                "Share of the records rebuilt within ε, seven records known; theory dashed",
                of("records_within", ("adversary", "known-io-rotation, knows 7 of the records")),
            ),
        ),
    ),
    Entry(
        "survey-most-exposed",
        f"{LIU}, section 4.1: who is most exposed, as the adversary computes it",
        (
            "The adversary chooses the record that it rebuilds with the highest probability, which it knows from the copy alone.",
        ),
        (
            Picture(
                "sweep",
                "Chance of the most exposed record by tolerance, one record known; theory dashed",
                of("most_exposed", ("adversary", "known-io-rotation, knows 1 of the records")),
            ),
        ),
    ),
)

ENTRIES = (*LI2012, *HUANG2005, *XIAO2009, *LIU2008)
