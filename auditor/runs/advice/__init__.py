"""From a table and a target to a release: which scheme and levels leave enough unknown at the least loss of use.

``advise`` puts it together. ``search`` finds the weakest level of a grid, ``candidates`` knows what
schemes tell and lose on paper, ``audits`` measures, ``columns`` chooses what of the data can be
perturbed. Uses the rest of ``runs`` and every room below it.
"""
