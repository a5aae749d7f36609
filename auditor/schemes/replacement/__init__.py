"""The replacement process of uniform perturbation: law and samplers.

Uses ``auditor.schemes.base``. Its schemes are in ``auditor.schemes.uniform``.
"""
