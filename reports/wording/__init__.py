"""What reports say, the same in every format: verdicts, the method, differences.

Uses ``reports.figures``; knows no format: see ``reports.layout``.
"""
