"""Process of an audit: signals, output, memory, threads, containment.

Worker processes and finished tasks are in ``auditor.runs``.
"""
