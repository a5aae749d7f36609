"""Arithmetic that knows no privacy: moments, linear algebra, blocks of rows, random streams, statistics.

Uses numpy and scipy, and of the project the ground floor alone. What is about noise lives in
``auditor.schemes``, what is about attacks in ``auditor.adversary``.
"""
