"""Categorical tables: laws, draws, posteriors and the audit of uniform perturbation (xiao2009)."""
