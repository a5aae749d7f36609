"""Scenarios to start from: one made for a table, from what was found of it, and templates of several kinds.

``selection`` says which columns are audited, ``draft`` writes the scenario; ``templates`` holds YAML that runs as it stands.
"""
