"""Attempts on a release of numbers: one attack, with one state of knowledge, fitted and measured on every coalition.

Linear attacks are measured from moments, others row by row. What comes out are errors; they become
records in ``auditor.audit.base``, and ``auditor.audit.numeric_engine`` asks for them.
"""
