"""Scenarios: what is perturbed, attacked and expected, read from YAML."""
