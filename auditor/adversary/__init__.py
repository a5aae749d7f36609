"""Adversaries: copies, knowledge, the attack interface and its checks.

Originals never enter. ``auditor_attacks`` holds the attacks, ``auditor.audit`` the measurement.
"""
