"""A release under audit, its outcome, and its records.

``session`` has the loop over attacks and coalitions for all engines. Uses ``numeric``.
"""
