"""Process of an audit: signals, output, memory, threads, containment.

Uses ``auditor.text`` and ``auditor.errors``. Worker processes and finished tasks are in
``auditor.runs``.
"""
