"""YAML 1.2 with positions and limits, without code execution.

Limits include the expansion of aliases. This package uses only errors.
"""
