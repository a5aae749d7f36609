"""Cases that `pytest -m "not slow"` skips: slow scenarios, and later variants of a test."""

import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

# Container images often forbid compiled modules; every started program would compile again,
# for a second.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Two workers with linear algebra on all cores need twice the time. Set before numpy is imported;
# started programs inherit the variables.
for _library in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_library, "1")

collect_ignore = [
    "scenarios/quickstart.yaml"
]  # tests/reports/test_report_readme.py runs the quickstart, and reads the results

SLOW = {
    "batches", "both-worlds", "guarantees", "huang2005-exp1",
    "huang2005-exp2", "huang2005-exp2-exact", "huang2005-exp3", "huang2005-exp3-exact", "huang2005-exp4",
    "huang2005-exp4-exact", "known-records",
    "li2012-example", "li2012-fig2", "li2012-fig3", "li2012-fig4", "li2012-fig4-wisconsin", "li2012-fig5",
    "lossless-noises", "low-order-bits", "nested-anonymity", "official-statistics", "population-sample",
    "record-linkage", "serial", "serial-categories", "serial-skewed",
    "strongest-joint", "strongest-kinds", "strongest-kinds-mixture",
    "strongest-kinds-series", "survey-additive", "survey-dimensionality", "survey-ica", "survey-kanonymity", "survey-known-sample",
    "survey-most-exposed", "survey-privacy-measures", "survey-projection", "survey-rare-cells", "survey-rotation",
    "published-categories", "shown-columns", "shown-groups", "survey-rotation-noise", "survey-tables",
    "theorem-4", "uniform-quickstart", "with-records", "xiao2009-fig5",
    "xiao2009-fig6", "xiao2009-fig7", "xiao2009-fig8", "xiao2009-fig8-multi-pert",
}  # fmt: skip
"""More than about four seconds each, together nine tenths of the time of all scenarios. Every family
of schemes keeps a quick scenario; k-anonymity is audited by tests/schemes/test_k_anonymity.py."""


LONG = {*(Path(__file__).parent / "tests/long.txt").read_text().splitlines()}
"""Tests of more than about a second each, together two fifths of the time of all quick ones."""

WITHOUT_LEARNER = {
    "official-statistics", "published-categories", "published-copies", "shown-groups",
}  # fmt: skip
"""Scenarios without expectations on the insider's learner, most of the work.
tests/reports/test_first_screen.py runs `published-copies` with the learner."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[object]:
    """Run an item with few seeds of noise, and a test with a weaker learner.

    All seeds need 6 s a process and 0.3 s a copy; tests/audit/test_insider_noise.py has all. Two
    folds and few trees find fewer leaks, in two fifths of the time; scenarios have all.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("auditor.audit.insider_noise.generators.LAST_SEED", 1_023)
        if item.path.suffix != ".yaml":
            patch.setattr("auditor.audit.insider.fitted.FOLDED", 0)
            patch.setattr("auditor.audit.categorical.other_rows.STAGES", (8, 20))
        elif item.path.stem in WITHOUT_LEARNER:
            patch.setattr("auditor.audit.without_law.fitted_records", lambda *asked: [])
            patch.setattr("auditor.audit.categorical.session.insider_records", lambda asked: [])
        return (yield)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark every expectation of a slow scenario."""
    if item.path.suffix == ".yaml" and item.path.stem in SLOW:
        item.add_marker(pytest.mark.slow)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all but the first variant of long tests and of those ``slow_after_first``.

    A long test without variants is slow.
    """
    quick = [item for item in items if item.get_closest_marker("slow") is None]
    names = [item.nodeid.removeprefix("tests/").partition("[")[0] for item in quick]
    variants, seen = Counter(names), set[str]()
    for item, name in zip(quick, names, strict=True):
        if name in LONG or item.get_closest_marker("slow_after_first") is not None:
            if name in seen or (name in LONG and variants[name] == 1):
                item.add_marker(pytest.mark.slow)
            seen.add(name)
