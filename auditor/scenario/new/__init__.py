"""New scenarios: a draft for a table, and templates.

``selection`` chooses the audited columns. ``draft`` writes the scenario. ``templates`` has YAML
that runs unchanged.
"""
