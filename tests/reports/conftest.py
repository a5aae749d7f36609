"""Audits to render; each is built once."""

from __future__ import annotations

import pytest
import report_cases

import auditor
from auditor.results.advice import Advice
from auditor.results.model import AuditResult


@pytest.fixture(scope="session")
def quickstart() -> AuditResult:
    return report_cases.quickstart()


@pytest.fixture(scope="session")
def prefixes() -> AuditResult:
    return report_cases.prefixes_only()


@pytest.fixture(scope="session")
def failed() -> AuditResult:
    return report_cases.failed()


@pytest.fixture(scope="session")
def swept() -> AuditResult:
    return report_cases.swept()


@pytest.fixture(scope="session")
def hostile() -> AuditResult:
    return report_cases.hostile()


@pytest.fixture(scope="session")
def six() -> AuditResult:
    return report_cases.six()


@pytest.fixture(scope="session")
def uniform() -> AuditResult:
    return auditor.run("xiao2009-examples")


@pytest.fixture(scope="session")
def advice() -> Advice:
    return report_cases.advice()
