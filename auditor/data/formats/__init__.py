"""Formats: CSV and Parquet read part by part and written, headers distinguished from records.

Uses ``auditor.data.columns``. Which of the columns are wanted, and what for, is ``auditor.data.load``.
"""
