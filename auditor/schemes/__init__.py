"""Built-in perturbation schemes, one idea per file.

Each module registers its schemes, except ``draw``, which draws copies of any. Knows no attack.
"""
