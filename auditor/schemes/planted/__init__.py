"""The self-test's catalogue: schemes with a planted leak, and honest ones; each module registers its cases.

Uses the schemes and ``auditor.schemes.base.case``, which says what a case is. ``auditor.selftest`` audits them.
"""

from auditor.schemes.planted import categories, honest, innovations, noise, plans, processes

__all__ = ["categories", "honest", "innovations", "noise", "plans", "processes"]
