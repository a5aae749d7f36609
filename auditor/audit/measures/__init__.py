"""Measures besides an attack's error: privacy, utility, geometry, guarantees.

Uses ``base`` and ``numeric``; scenarios choose by ``auditor.scenario.read_measures``.
"""
