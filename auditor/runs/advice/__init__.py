"""Advice: scheme and levels that meet a target at least loss of use."""
