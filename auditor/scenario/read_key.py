"""Key column of the whole scenario, from the data or from joined copies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from auditor import registry
from auditor.data.request import DataUse
from auditor.scenario.model import SchemeUse
from auditor.scenario.problems import Problems
from auditor.text.column_names import listed


def with_shared_key(
    data: DataUse | None, schemes: Sequence[SchemeUse], problems: Problems
) -> tuple[DataUse | None, tuple[SchemeUse, ...]]:
    """Return data without the key column, and schemes joined by it.

    A key of the data joins all copies from files. Otherwise only schemes that name a key are
    joined.
    """
    joining = [
        use
        for use in schemes
        if not registry.get("scheme", use.name).makes_copies
        and "key" in type(use.parameters).model_fields
    ]
    named = [data.key] if data is not None and data.key is not None else []
    keys = list(
        filter(
            None,
            dict.fromkeys([*named, *(getattr(use.parameters, "key", None) for use in joining)]),
        )
    )
    if data is None or not keys:
        return data, tuple(schemes)
    where = ("data", "key") if named else ("schemes",)
    audited = (*(data.columns or ()), *data.bins, *data.categorical, *data.hierarchies, *data.dates)
    if len(keys) > 1:
        problems.add(
            where, f"must name one key column for the whole scenario; here are {listed(keys)}"
        )
    elif keys[0] in audited:
        problems.add(
            where, f"name the key {listed(keys)}, which is audited: a key only identifies records"
        )
    if named:
        joined = [use.parameters.model_copy(update={"key": keys[0]}) for use in joining]
        by_id = {use.id: parameters for use, parameters in zip(joining, joined, strict=True)}
        schemes = [replace(use, parameters=by_id.get(use.id, use.parameters)) for use in schemes]
    return replace(data, key=keys[0]), tuple(schemes)
