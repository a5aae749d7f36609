"""Releases of categories: exact posteriors from counts, errors, and figures of the release.

Uses ``base``, ``counts``, ``measures``, ``insider`` and ``pooling``.
"""
