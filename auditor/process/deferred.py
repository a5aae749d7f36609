"""Libraries that take long to import and that few commands need: each is imported when something is first asked of it.

>>> from auditor.process.deferred import pd    # `import pandas as pd` takes a quarter of a second, and every start would pay for it
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq
    import scipy

__all__ = ["pa", "pd", "pq", "scipy"]


class _Deferred(ModuleType):
    """A module that stands in for another of its name."""

    def __getattr__(self, name: str) -> Any:
        """Import what this stands for, and look there."""
        return getattr(import_module(self.__name__), name)


if not TYPE_CHECKING:
    pa, pd, pq, scipy = map(_Deferred, ("pyarrow", "pandas", "pyarrow.parquet", "scipy"))
