"""Attacks by an insider who knows the noise ``Z = Y − X`` of copies.

The copies have no stated law.
"""
