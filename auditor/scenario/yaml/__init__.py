"""YAML 1.2 with positions and limits: nodes that know their line and column, no aliases that explode, no code.

Uses errors alone. What a field means is ``auditor.scenario``.
"""
