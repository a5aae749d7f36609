"""Releases of categories: exact posteriors from counts, their errors, and figures of the release.

Uses ``counts``, ``pooling`` and ``drawn_law`` beside it.
"""
