"""Audit of one release: draw copies, fit attacks, measure errors.

``engine`` selects ``numeric_engine`` (moments and rows) or ``categorical.session`` (counts and
posteriors). Both run the loop of ``base.session``. Many releases and workers are ``auditor.runs``.
"""
