"""Process of an audit: signals, output, memory, threads, containment.

Uses ``auditor.base.text`` and ``auditor.base.errors``. Worker processes and finished tasks are in
``auditor.runs``.
"""
