"""New scenarios: a draft for a table, and templates.

``draft`` chooses the audited columns and writes the scenario. ``templates`` has YAML that runs
unchanged.
"""
