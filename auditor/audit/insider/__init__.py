"""Predictions by an insider, a learner fitted to the originals.

It attacks copies without a law (``fitted``), and measures whether pooling copies gains anything
(``gain``). Families of features are plugins (``features``).
"""
