"""Base classes of schemes: additive noise and multiplication by a matrix.

Uses ``auditor.data`` and lower packages. The schemes themselves are the modules of
``auditor.schemes``.
"""
