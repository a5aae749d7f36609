"""What results say, read and weighed: figures pooled over replicates, the matrix, who is strongest, series.

It says nothing in sentences and draws nothing: see ``auditor_reports.wording`` and ``auditor_reports.charts``. Uses
``auditor.results`` alone.
"""
