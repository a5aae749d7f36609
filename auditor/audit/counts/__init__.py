"""Blocks of category codes, and counts of values in their copies.

Used by ``categorical``.
"""
