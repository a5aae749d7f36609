"""Classes of records that look alike: how they are cut, pooled, and what they keep of k, ℓ, α, h, e and t.

Arithmetic on codes, and what its schemes have in common (``anonymous_scheme``); these are ``auditor.schemes.k_anonymity``
and ``auditor.schemes.k_anonymity_multilevel``. What can be inferred of classes is ``auditor.audit.anonymity``.
"""
