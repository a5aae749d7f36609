"""Run the command line by ``python -m auditor.cli``."""

from auditor.cli import main

main()
