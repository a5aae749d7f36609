"""Advice: scheme and levels that meet a target at least loss of use.

``advise`` leads. ``candidates`` has the schemes with their closed forms and the search, ``audits``
measures, ``columns`` selects the data, ``request`` checks the arguments.
"""
