"""Scenarios: read from YAML or Python and checked, all errors at once.

``yaml`` reads text with positions. ``new`` writes scenarios to start from. ``auditor.runs`` runs
scenarios.
"""
