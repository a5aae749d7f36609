import numpy as np

import auditor
from auditor.numerics.blocks import row_blocks
from auditor.registry import get
from auditor.results.records import Measurement
from auditor.runs.perturb import as_table
from auditor.schemes.base.scheme import Key, table_moments

NO_LEARNER = [{"estimated": {"rows": 50}}]
"""Knowledge by which copies without a law are audited without the insider's learner."""


def as_audited(X, scheme, levels, seed, **parameters):
    made, copies = get("scheme", scheme)(**parameters), [np.empty_like(X) for _ in levels]
    sampler = made.sampler(levels, table_moments(as_table(X)), Key(seed, scheme))
    for index, (a, b) in enumerate(row_blocks(*X.shape)):
        sampler.block(index, X[a:b], [copy[a:b] for copy in copies])
    return auditor.Release(X, tuple(copies), tuple(levels), made)


def written(folder, table, copies):
    """Write ``table.csv`` and its copies to a folder; return the paths of the copies."""
    table.to_csv(folder / "table.csv", index=False)
    names = []
    for place, copy in enumerate(copies):
        names.append(str(folder / f"copy-{place}.csv"))
        copy.to_csv(names[-1], index=False)
    return names


def audited_files(folder, table, copies, data=None, scheme=None, **changes):
    """Audit copies from files, with ``exposure`` at one half."""
    published = {"name": "published", "copies": written(folder, table, copies)}
    source = {"source": str(folder / "table.csv")}
    scenario = {
        "data": source | (data or {}), "schemes": [published | (scheme or {})],
        "knowledge": ["perfect"], "coalitions": ["singles"], "attacks": ["llse"],
        "expect": [{"exposure": {"unknown": {"at-least": 0.5}}}],
    }  # fmt: skip
    return auditor.run(scenario | changes)


def cells(result, **where):
    """Return the figures of an audit whose fields have these values."""
    return [
        one
        for one in result.measurements
        if all(getattr(one, name) == value for name, value in where.items())
    ]


def record(value, error=0.01, **changes):
    """Return a figure of an attack on one copy."""
    fields = dict.fromkeys(Measurement._fields) | {
        "sweep": {}, "scheme": "s", "knowledge": "perfect", "attack": "llse", "coalition": (1,),
        "levels": (0.5,), "replicate": 1, "attribute": "*", "metric": "normalized_error",
        "value": value, "std_error": error, "status": "ok", "error_bar": "closed-form",
    }  # fmt: skip
    return Measurement(**(fields | changes))
