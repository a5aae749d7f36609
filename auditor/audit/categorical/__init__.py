"""Releases of categories: exact posteriors from counts, their errors, and figures of the release.

Uses ``counts``, ``measures`` and ``pooling`` beside it.
"""
