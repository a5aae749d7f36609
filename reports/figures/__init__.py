"""What results say, read and weighed: figures pooled over replicates, the matrix, who is strongest, series.

It says nothing in sentences and draws nothing: see ``reports.wording`` and ``reports.charts``. Uses
``auditor.results`` alone.
"""
