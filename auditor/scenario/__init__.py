"""Scenarios: what is perturbed, attacked and expected, read from YAML and checked, all errors at once.

Uses the rooms up to ``auditor.adversary``. ``yaml`` reads text with positions, and ``new`` writes
scenarios to start from; a scenario that was read is carried out by ``auditor.runs``.
"""
