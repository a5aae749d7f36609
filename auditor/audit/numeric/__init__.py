"""Arithmetic of numeric releases: moments, maps, errors and error bars, as arrays.

The lowest room of ``auditor.audit``; ``base`` makes records of the arrays.
"""
