"""Attacks by an insider who knows the noise ``Z = Y − X`` of copies.

The copies have no stated law.

Each module holds one attack: pure functions on arrays, and an entry that returns findings
(``finding.Finding``).
"""
