"""Measures beside an attack's error: entropy, geometry, utility, records rebuilt as a whole, an audited ε.

Uses ``base`` and ``numeric`` beside it; which of them a scenario asks for is
``auditor.scenario.read_measures``.
"""
