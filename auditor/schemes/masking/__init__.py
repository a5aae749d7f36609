"""Masking methods of official statistics, most without a noise law.

Each scheme is one pure function of the table.
"""

from importlib import import_module

from auditor.process.environment import modules_in

for _module in modules_in(__name__, __path__):
    import_module(_module)  # each registers its scheme
