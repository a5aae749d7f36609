"""Contract checks of plugins, as functions that raise.

A plugin's tests call them with its class.

>>> from auditor import registry
>>> from auditor.testing import check_source
>>> check_source(registry.get("source", "iris"))

A failed check raises ``ContractError``. ``auditor.plugin`` has the base classes.
"""

from auditor.testing.attacks import check_attack
from auditor.testing.contract import ContractError, check_feature, check_plugin, check_source
from auditor.testing.schemes import check_scheme

__all__ = [
    "ContractError",
    "check_attack",
    "check_feature",
    "check_plugin",
    "check_scheme",
    "check_source",
]
