"""What `import auditor` offers."""

from __future__ import annotations

import subprocess
import sys


def test_attack_is_the_function_whatever_was_imported_before() -> None:
    code = "import auditor.attack; from auditor.attack import View; assert callable(auditor.attack)"
    subprocess.run([sys.executable, "-c", code], check=True)
