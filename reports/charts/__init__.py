"""What reports draw: the rows behind each chart, the charts as specifications, and the plot in characters.

Uses ``reports.figures`` and ``reports.wording``. Where a chart stands on a page is ``reports.layout``.
"""
