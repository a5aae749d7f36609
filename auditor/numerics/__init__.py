"""Numerics: moments, linear algebra, blocks, random streams, statistics.

Independent of privacy.
"""
