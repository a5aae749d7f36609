"""Document tree of a report, and code that its writers share.

`document` defines the tree; `audit`, `advice` and `changes` build it. `terminal_writer` and `page`
serve the renderers of ``auditor_reports``.
"""
