"""Equivalence classes of records: partition, merging and promises.

Shared by both schemes of ``auditor.schemes.k_anonymity``. Inference
from classes is in ``auditor.audit.measures.record_disclosure``.
"""
