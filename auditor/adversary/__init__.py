"""Adversaries: copies, knowledge, the attack interface and its checks.

Uses ``auditor.schemes`` for laws. Originals never enter. The package ``auditor_attacks`` holds the
attacks, ``auditor.audit`` the measurement.
"""
