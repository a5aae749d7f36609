"""Advice: scheme and levels that meet a target at least loss of use.

``advise`` puts it together. ``search`` finds the weakest level of a grid, ``candidates`` knows what
schemes tell and lose on paper, ``audits`` measures, ``columns`` chooses what of the data can be
perturbed. Uses the rest of ``runs`` and every room below it.
"""
