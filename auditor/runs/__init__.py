"""Runs of whole scenarios, copies for release, and advice.

Uses all lower rooms. ``auditor.audit`` audits one release; ``auditor.runs.api`` and ``auditor.cli`` call
this room.
"""
