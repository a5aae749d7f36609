"""Columns that stay in their files: rows, codes and domains by block.

Uses ``auditor.data.formats`` and ``auditor.data.columns``. Tables of streamed columns:
``auditor.data.table`` and ``auditor.data.streamed_table``.
"""
