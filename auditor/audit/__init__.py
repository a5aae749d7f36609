"""Audit of one release: copies made, attacks fitted, errors and evidence measured.

``engine`` selects ``numeric_engine`` (moments and rows) or ``categorical_engine`` (counts and
posteriors); both run the loop of ``base.session``. Many releases and workers are ``auditor.runs``.
"""
