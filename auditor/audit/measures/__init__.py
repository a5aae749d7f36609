"""Measures of privacy, utility, geometry and guarantees.

Uses ``base`` and ``numeric``; scenarios choose by ``auditor.scenario.read_expectations``.
"""
