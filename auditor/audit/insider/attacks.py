"""Attacks by an insider on copies without a stated law; each has the signature of ``fitted_records``."""

from __future__ import annotations

from auditor.audit.insider.fitted import fitted_records

INSIDER_ATTACKS = (fitted_records,)
"""All of them, in the order of their records."""
