"""Built-in feature families, found through the entry point ``features``.

A family yields columns, and imports ``auditor.audit.insider.feature`` and arithmetic.
"""
