"""What can be inferred of classes of records.

The classes themselves are ``auditor.schemes.generalisation``.
"""
