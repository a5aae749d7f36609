"""Tables by keyword."""

from auditor.data import load
from auditor.data.columns.categorical_table import Bin
from auditor.data.table import DataUse


def load_table(source, *, rng, base=None, varied=True, categories=None, **request):
    if categories is not None:
        bins = {name: Bin.model_validate(rule) for name, rule in categories.bins.items()}
        request |= {"bin": bins, "categorical": categories.domains}
    use = DataUse.model_construct(source=source, **request)
    return load.load_table(use, rng, base, varied)


def load_target(source, target, *, rng, base=None, **request):
    use = DataUse.model_construct(source=source, **request)
    return load.load_target(use, target, rng, base)
