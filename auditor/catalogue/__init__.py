"""What is installed, as ``auditor list`` and ``auditor show`` print it.

``pages`` makes lists and pages from the registry, for which every plugin is imported; ``kept`` answers from what was made the last time.

Uses the registry, metrics, the bibliography and scenarios' files; the commands are ``auditor.cli.inspect``.
"""
