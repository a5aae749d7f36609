"""One release while it is audited, what its audit yields, and how figures become records.

Uses the sums of ``auditor.audit.numeric``. Whoever measures anything stands above it.
"""
