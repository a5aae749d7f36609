"""The process that an audit runs in: signals, standard output, memory, and the block in which every plugin is called.

Uses ``auditor.text`` and ``auditor.errors``; knows no table and no audit. Worker processes and checkpoints
are ``auditor.runs``.
"""
