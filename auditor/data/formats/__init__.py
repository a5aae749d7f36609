"""Formats: CSV and Parquet read part by part and written, other kinds read whole; headers distinguished from records.

Uses ``auditor.data.columns``. Which of the columns are wanted, and what for, is ``auditor.data.load``.
"""
