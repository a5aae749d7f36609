"""Built-in feature families, found through the entry point ``features`` like those of third parties.

A family is one module: a class that yields columns, and the functions that compute them. It imports
``auditor.audit.insider.feature`` and arithmetic. A new kind of leak becomes a new family here, or
in a package of a third party.
"""
