"""Classes of records that look alike: how they are cut, pooled, and what they keep of k, ℓ, α and t.

Arithmetic on codes; the scheme is ``auditor.schemes.k_anonymity``, what can be inferred of its classes
``auditor.audit.anonymity``.
"""
