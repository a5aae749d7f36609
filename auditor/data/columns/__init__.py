"""What columns may hold, and what is found in them: checks, categories, generalisation hierarchies, quantiles, ranges.

The lowest room of ``auditor.data``: it is given arrays and frames. Where they come from is
``auditor.data.formats``.
"""
