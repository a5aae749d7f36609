"""Tables to audit: sources, formats and checks.

``columns`` holds column types and checks, ``formats`` reads and writes files, ``file_rows`` reads
large files by block, and ``sources`` are plugins. Uses ``auditor.results`` and lower
packages. Perturbation is in ``auditor.schemes``.
"""
