"""Text of ``auditor list`` and ``auditor show``.

``pages`` writes it from the registry, which imports every plugin. ``kept`` caches it. The commands
are in ``auditor.cli.inspect``.
"""
