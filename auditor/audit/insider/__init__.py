"""Predictions by an insider: a learner that is fitted to the originals and sees the cells of a coalition's copies.

Copies without a law are attacked by it (``attacks``), and it measures whether pooling copies gains
anything (``gain``). Families of features are plugins (``features``).
"""
