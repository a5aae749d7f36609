"""What reports say, the same in every format: verdicts, the method, differences.

Uses ``auditor_reports.figures``; knows no format: see ``auditor_reports.layout``.
"""
