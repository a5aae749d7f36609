"""Adversaries: copies, knowledge, the attack interface and its checks.

Originals never enter.
"""
