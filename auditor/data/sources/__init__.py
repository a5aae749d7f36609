"""The data sources that come with the workbench; any ``.csv`` or ``.parquet`` path is a source too.

A plugin package: one source a module. Uses the rest of ``auditor.data``, which imports no source: they are
found by name.
"""
