"""Slow libraries, imported at first use.

>>> from auditor.process.deferred import pd    # `import pandas as pd` costs 0.25 s at every start
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
    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self.__name__), name)


if not TYPE_CHECKING:
    pa, pd, pq, scipy = map(_Deferred, ("pyarrow", "pandas", "pyarrow.parquet", "scipy"))
