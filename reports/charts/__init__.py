"""What reports draw: the rows behind each chart, the charts as specifications, and the plot in characters.

Uses ``auditor_reports.figures`` and ``auditor_reports.wording``. Where a chart stands on a page is ``auditor_reports.layout``.
"""
