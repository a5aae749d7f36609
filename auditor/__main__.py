"""Run the command line by ``python -m auditor``."""

from auditor.cli import main

main()
