"""Runs of whole scenarios, copies for release, and advice.

Uses every room below. What one release yields is ``auditor.audit``; how it is asked for is
``auditor.cli`` and ``auditor.api``.
"""
