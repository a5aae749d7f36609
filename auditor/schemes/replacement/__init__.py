"""The replacement process of uniform perturbation: law and samplers.

Its schemes are in ``auditor.schemes.uniform``.
"""
