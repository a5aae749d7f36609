"""What every plugin must keep, as functions that raise: ``check_attack``, ``check_scheme``, ``check_source``, ``check_feature``.

They are what this project runs over its own registry; a plugin's own tests call them with its class.

>>> from auditor import registry
>>> from auditor.testing import check_source
>>> check_source(registry.get("source", "iris"))

Uses every room below. What a plugin is written with is ``auditor.plugin``; a failed check is a ``ContractError``.
"""

from __future__ import annotations

from auditor.testing.attacks import check_attack
from auditor.testing.contract import ContractError, check_plugin
from auditor.testing.features import check_feature
from auditor.testing.schemes import check_scheme
from auditor.testing.sources import check_source

__all__ = ["ContractError", "check_attack", "check_feature", "check_plugin", "check_scheme", "check_source"]
