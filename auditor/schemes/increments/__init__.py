"""Noise as a process with independent increments, seen at several times: what Laplace, geometric and Skellam noise have in common.

Uses ``auditor.schemes.base``. The processes themselves, two pure functions each, stand beside their schemes in the modules of
``auditor.schemes``; Gaussian noise, whose steps are weighted sums of copies, is ``auditor.schemes.corner_wave``.
"""
