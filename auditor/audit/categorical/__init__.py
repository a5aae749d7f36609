"""Releases of categories: posteriors from counts, errors, and figures.

Uses ``base``, ``measures``, ``insider`` and ``law_tests``.
"""
