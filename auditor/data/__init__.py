"""Tables to audit: sources, formats and checks.

``columns`` holds column types and checks, ``formats`` reads and writes files, ``streamed`` holds
tables that stay in their files, and ``sources`` are plugins. Uses ``auditor.results`` and lower
packages. Perturbation is in ``auditor.schemes``.
"""
