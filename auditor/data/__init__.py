"""Tables to audit: where they come from, and the checks that make them fit to be audited.

``columns`` says what a column may hold, ``formats`` reads and writes formats, ``streamed`` holds tables that
stay in their files, and ``sources`` are plugins; the modules here put them together. Uses ``auditor.results``
and what lies below it. What is done to a table is a scheme's: ``auditor.schemes``.
"""
