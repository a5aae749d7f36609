"""The process that an audit runs in: signals, standard output, memory, versions, threads, and the block in which plugins are called.

Uses ``auditor.text`` and ``auditor.errors``; knows no table and no audit. Worker processes and checkpoints
are ``auditor.runs``.
"""
