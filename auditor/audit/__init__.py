"""Audit of one release: draw copies, fit attacks, measure errors.

``engine`` audits numbers (moments and rows), or selects ``categorical.session`` (counts and
posteriors). Both run the loop of ``base.session``. Many releases and workers are ``auditor.runs``.
"""
