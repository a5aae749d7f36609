"""Predictions by an insider, a learner fitted to the originals.

Copies without a law are attacked by it (``attacks``), and it measures whether pooling copies gains
anything (``gain``). Families of features are plugins (``features``).
"""
