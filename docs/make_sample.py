"""Copy the quickstart's terminal report to README.md: ``python docs/make_sample.py``.

``--results DIR`` reuses saved results, for example ``audit/quickstart``.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import auditor
from auditor.results.model import AuditResult
from auditor_reports.terminal import Terminal

ROOT = Path(__file__).resolve().parents[1]
WIDTH = 96
FENCE = "```text\n"


def main(arguments: Sequence[str] | None = None) -> None:
    """Replace the sample."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--results", type=Path, help="results of the quickstart to reuse")
    folder = parser.parse_args(arguments).results
    result = auditor.run("quickstart") if folder is None else AuditResult.load(folder)
    readme = ROOT / "README.md"
    text = readme.read_text(encoding="utf-8")
    readme.write_text(text.replace(shown(text), sample(result)), encoding="utf-8")


def sample(result: AuditResult) -> str:
    """First screen, exposure and expectations of the terminal report."""
    return Terminal(width=WIDTH, full=False).render([result]).partition("\n\n--full prints")[0]


def shown(readme: str) -> str:
    """Current sample of the README."""
    return readme.partition(FENCE)[2].partition("\n```")[0]


if __name__ == "__main__":
    main()
