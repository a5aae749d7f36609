"""The replacement process of uniform perturbation: its law, and the implementations that draw from it.

Uses ``auditor.schemes.base``. Schemes in ``auditor.schemes.uniform`` put a name and parameters on it.
"""
