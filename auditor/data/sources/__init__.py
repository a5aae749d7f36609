"""Built-in data sources; any table file is a source too.

A plugin package: one source per module, found by name. Uses the rest of ``auditor.data``, which
imports no source.
"""
