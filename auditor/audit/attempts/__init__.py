"""Attacks on a numeric release: fitted and measured on every coalition.

Linear attacks are measured from moments, others row by row. Uses ``base``, ``measures`` and
``numeric``.
"""
