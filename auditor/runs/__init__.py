"""Runs of whole scenarios, copies for release, and advice.

Uses all lower rooms; ``auditor.runs.api`` and ``auditor.cli`` call this room.
"""
