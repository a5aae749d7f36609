"""Columns: kinds, checks, categories, hierarchies, quantiles, scans.

The lowest package of ``auditor.data``, for arrays and frames. ``auditor.data.formats`` reads them.
"""
