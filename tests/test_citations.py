import re
from functools import cache

from docs.evidence.fidelity_rows import papers
from tests.programs import ROOT

SECTIONS = {
    "li2012": "1 1.1 1.2 1.3 2 2.1 2.2 2.3 2.4 3 3.1 3.2 3.3 3.4 4 4.1 4.2 4.2.1 4.2.2 4.3 5 5.1 5.1.1 5.1.2 5.2 5.2.1 5.2.2 5.2.3 5.3 5.4 6 6.1 6.2 6.3 7",
    "huang2005": "1 2 3 4 4.1 4.2 5 5.1 5.1.1 5.1.2 5.2 5.2.1 5.2.2 5.3 6 6.1 7 7.1 7.2 7.3 7.4 8 8.1 8.2 9",
    "xiao2009": "1 1.1 1.2 2 3 4 5 5.1 5.2 6 7 8",
    "liu2008": "1 2 3 3.1 3.2 3.3 3.4 3.5 3.6 3.7 4 4.1 4.2 4.3 4.4 5 6",
}
"""From the papers' texts."""
KNOWN = {
    "balle2018": {"Theorem 8"}, "cover2006": {"chapter 8"},
    "dong2022": {"Corollary 2.13", "Corollary 3.3"}, "hundepool2012": {"chapter 3"},
}  # fmt: skip
KINDS = {"eq": "Equation", "fig": "Figure", "section": "Section", "(": "Equation"}
NUMBERS = r"\d+(?:\.\d+)*(?:(?:, | and |–)\d+(?:\.\d+)*)*"
WORDS = "sections?|eqs?\\.|equations?|theorems?|lemmas?|coroll(?:ary|aries)|propositions?|definitions?|algorithms?|protocols?|tables?|figures?|figs?\\.|appendix|examples?|chapters?|footnotes?|experiments?"  # fmt: skip
PLACE = re.compile(rf"({WORDS}) ({NUMBERS})|(\()({NUMBERS})\)", re.IGNORECASE)
CITED = re.compile(
    rf"\b([a-z]+\d{{4}})(?:'s)?,? \(?((?:(?:{WORDS}) {NUMBERS}|\({NUMBERS}\))(?:(?:, | and |–)(?:(?:{WORDS}) {NUMBERS}|\({NUMBERS}\)))*)",
    re.IGNORECASE,
)


def places(text):
    for key, cited in CITED.findall(text):
        for word, numbers, bracket, equations in PLACE.findall(cited):
            kind = (word or bracket).lower().rstrip(".").removesuffix("s")
            kind = kind.replace("corollarie", "corollary")
            for number in re.findall(r"\d+(?:\.\d+)*", numbers or equations):
                yield key, KINDS.get(kind, kind.capitalize()), number


@cache
def numbered():
    """Return all that can be looked up, by key."""
    found = {
        paper.key: {f"{kind} {n}" for kind, some in paper.numbered.items() for n in some}
        for paper in papers()
    }
    found["huang2005"] |= {f"Experiment {n}" for n in range(1, 5)}
    found["li2011"] |= found["li2012"]
    for key, sections in SECTIONS.items():
        found[key] |= {f"Section {n}" for n in sections.split()}
    return found | {key: {place.capitalize() for place in known} for key, known in KNOWN.items()}


def wrong(text):
    return [
        f"{key}, {kind} {n}"
        for key, kind, n in places(text)
        if f"{kind} {n}" not in numbered().get(key, set())
    ]


SOURCES = [
    path
    for folder in ("auditor", "attacks", "reports", "scenarios", "docs")
    for path in sorted((ROOT / folder).rglob("*"))
]


def test_what_is_cited_by_number_is_there():
    texts = {
        path: path.read_text(encoding="utf-8")
        for path in SOURCES
        if path.suffix in (".py", ".yaml", ".md")
    }
    del texts[ROOT / "docs/evidence/fidelity.md"]  # made of the list, with tests' names in it
    assert {path: found for path, text in texts.items() if (found := wrong(text))} == {}
    # so many are found that none is overlooked for its form
    assert sum(1 for text in texts.values() for _ in places(text)) > 200


def test_what_is_not_there_is_told():
    for text, told in [
        ("li2012, section 5.2.3; huang2005, sections 4 and 6.1", []),
        ("li2012 (17)–(18), huang2005 (11) and liu2008, section 4.1, eqs. 12.5 and 12.6", []),
        ("xiao2009's Figure 7, liu2008, Protocols 2 and 3, huang2005, footnote 1, li2011 (26)", []),
        ("li2012, section 2.5", ["li2012, Section 2.5"]),
        ("li2012 (26)", ["li2012, Equation 26"]),
        ("dong2022, Corollary 3.3; dong2022, Theorem 3", ["dong2022, Theorem 3"]),
    ]:
        assert wrong(text) == told
