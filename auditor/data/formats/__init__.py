"""File formats: CSV and Parquet by parts, others whole.

Also distinguishes headers from records. Uses ``auditor.data.columns``; ``auditor.data.load``
selects the columns.
"""
