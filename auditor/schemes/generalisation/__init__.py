"""Equivalence classes of records: partition, merging and promises.

Shared by ``auditor.schemes.k_anonymity`` and ``auditor.schemes.k_anonymity_multilevel``. Inference
from classes is in ``auditor.audit.measures.inferences``.
"""
