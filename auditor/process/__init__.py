"""Process of an audit: signals, output, memory, threads, containment.

Uses ``auditor.base`` and ``auditor.base``. Worker processes and finished tasks are in
``auditor.runs``.
"""
