"""Masking as official statistics do it: each scheme one pure function of the table, most of them without a law of noise.

Uses ``auditor.schemes.base``, and ``auditor.schemes.replacement`` where categories are masked. ``masked`` is what most of them have in
common; how a copy without a law is attacked is not known here: see ``auditor.adversary``.
"""

from importlib import import_module

from auditor.process.plugin_packages import modules_in

for _module in modules_in(__name__, __path__):
    import_module(_module)  # each registers its scheme
