"""Values for reports: figures pooled over replicates, matrix, series.

Uses only ``auditor.results``. Sentences are in ``auditor_reports.wording``, drawings in
``auditor_reports.charts``.
"""
