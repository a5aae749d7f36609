"""Noise with independent increments: Laplace, geometric and Skellam.

Uses ``auditor.schemes.base``. Each process, two pure functions, is next to its scheme in
``auditor.schemes``. Gaussian noise is ``auditor.schemes.corner_wave``.
"""
