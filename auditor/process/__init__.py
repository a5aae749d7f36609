"""The process that an audit runs in: signals, standard output, memory, versions, threads, and the block in which plugins are called.

``plugin_packages`` finds who declares plugins, and ``deferred`` has the libraries that are imported when they are first used.

Uses ``auditor.text`` and ``auditor.errors``; knows no table and no audit. Worker processes and checkpoints
are ``auditor.runs``.
"""
