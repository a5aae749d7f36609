"""Tables by keyword."""

from auditor.data import load
from auditor.data.table import DataUse


def load_table(source, *, rng, base=None, varied=True, categories=None, **request):
    if categories is not None:
        request |= {"bins": categories.bins, "categorical": categories.domains}
    return load.load_table(DataUse(source, **request), rng, base, varied)


def load_target(source, target, *, rng, base=None, **request):
    return load.load_target(DataUse(source, **request), target, rng, base)
