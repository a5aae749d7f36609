"""Chart data, Vega-Lite specifications and terminal plots.

Uses ``auditor_reports.figures`` and ``auditor_reports.wording``. ``auditor_reports.layout`` places
the charts.
"""
