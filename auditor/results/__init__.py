"""What an audit found: records, metrics, evidence, and how results are written, read, rounded, compared and rendered.

Uses the ground floor and ``auditor.numerics``. Renderers (the package ``auditor_reports``) import
this room; who measures is ``auditor.audit``.
"""
