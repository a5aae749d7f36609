"""What a scheme is, and the two large kinds of it: noise that is added, and a matrix that records are multiplied by.

Uses ``auditor.data`` and what lies below it. Schemes themselves are the modules of ``auditor.schemes``.
"""
