"""Cases of the self-test: schemes with a planted leak, and honest ones.

Each module registers its cases. Uses the schemes and ``auditor.schemes.base.case``;
``auditor.selftest`` audits them.
"""

from auditor.schemes.planted import categories, honest, innovations, noise, plans, processes

__all__ = ["categories", "honest", "innovations", "noise", "plans", "processes"]
