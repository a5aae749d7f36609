"""Built-in feature families, found through the entry point ``features``.

A family is a class that yields columns. It imports ``auditor.audit.insider.feature`` and arithmetic. A
new kind of leak becomes a new family, here or in a package of a third party.
"""
