"""Arithmetic of numeric releases: moments, maps, errors, error bars.

The lowest room of ``auditor.audit``; ``base`` makes records of the arrays.
"""
