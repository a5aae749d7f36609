"""Blocks of codes, and counts of what their copies show.

What is concluded from counts is ``auditor.audit.categorical``.
"""
