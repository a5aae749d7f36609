"""Attacks of an insider who knows the noise ``Z = Y − X`` of copies without a stated law.

Each module holds one attack: pure functions on arrays, and an entry that returns findings (``finding.Finding``).
"""
