"""``python -m auditor.cli`` is ``python -m auditor``."""

from auditor.cli import main

main()
