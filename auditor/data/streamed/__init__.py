"""Columns that stay in their files: rows, codes and domains read block by block, never all at once.

Uses ``auditor.data.formats`` and ``auditor.data.columns``. The tables made of them are ``auditor.data.table``
and ``auditor.data.streamed_table``.
"""
