"""A whole scenario carried out: plan, tasks, passes, workers, checkpoint; and copies made for release.

Uses every room below. What one release yields is ``auditor.audit``; how it is asked for is
``auditor.cli`` and ``auditor.api``.
"""
