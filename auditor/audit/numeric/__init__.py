"""Releases of numbers: moments gathered in one pass, linear attacks judged from moments, others row by row.

The lowest room of ``auditor.audit``: arithmetic that yields arrays. They become records in
``auditor.audit.base``.
"""
