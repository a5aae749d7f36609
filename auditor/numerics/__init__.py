"""Numerics: moments, linear algebra, blocks, random streams, statistics.

Independent of privacy. Uses numpy, scipy and the project's lowest package only. Noise is in
``auditor.schemes``, attacks are in ``auditor.adversary``.
"""
