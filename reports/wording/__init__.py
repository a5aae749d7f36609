"""Sentences of reports: verdicts, method, differences.

Uses ``auditor_reports.figures``.
"""
