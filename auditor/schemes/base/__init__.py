"""Base classes of schemes: additive noise and multiplication by a matrix.

The schemes are the modules of ``auditor.schemes``.
"""
