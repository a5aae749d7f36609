"""Audits to render; each is built once."""

import pytest
import report_cases

import auditor

MAKERS = {
    "quickstart": report_cases.quickstart, "prefixes": report_cases.prefixes_only,
    "failed": report_cases.failed, "swept": report_cases.swept, "hostile": report_cases.hostile,
    "advice": report_cases.advice,
    "uniform": lambda: auditor.run("xiao2009-examples"),
}  # fmt: skip

for _name, _make in MAKERS.items():
    globals()[_name] = pytest.fixture(scope="session", name=_name)(lambda make=_make: make())
