"""Releases of categories: posteriors from counts, errors, and figures.

Uses ``base``, ``counts``, ``measures``, ``insider`` and ``pooling``.
"""
