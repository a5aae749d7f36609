"""Sections ``data`` and ``knowledge`` of a scenario."""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import Any

from auditor import registry
from auditor.adversary.knowledge import KINDS, Knowledge
from auditor.base import AuditorError, did_you_mean, shortened
from auditor.base.types import Plain
from auditor.data.formats.file_kinds import SAID, SUFFIXES
from auditor.data.table import DataUse
from auditor.registry.parameters import Form, shown
from auditor.results.files import located, split_name, with_reading
from auditor.scenario.problems import FormError, Problems, read_entry

DATA_FIELDS = tuple(
    field.alias or name for name, field in DataUse.model_fields.items() if name != "parameters"
)


def read_data(value: Any, problems: Problems, base: FilePath | None) -> DataUse | None:
    """Return the section ``data`` or None, and report its errors.

    A file is searched in ``base``, then in the working directory. It is not opened.
    """
    given = {"source": value} if isinstance(value, str) else value
    if not isinstance(given, dict):
        wanted = "a source's name, a path or a mapping with `source`"
        problems.add(("data",), f"must be {wanted}; got {shown(value)}")
        return None
    common = {key: item for key, item in given.items() if key.replace("_", "-") in DATA_FIELDS}
    form = problems.model(("data",), common, DataUse)
    source = given.get("source")
    if not isinstance(source, str):
        return None
    own = {key: item for key, item in given.items() if key not in common}
    if form is not None:
        source = with_reading(source, form.sheet, form.blank)
    parameters = _source_parameters(source, own, problems, base)
    if form is None:
        return None
    read = {"source": source, "sheet": None, "blank": None, "parameters": parameters}
    return form.model_copy(update=read)


def _source_parameters(source: str, own: Plain, problems: Problems, base: FilePath | None) -> Plain:
    if registry.has("source", source):
        parameters = registry.get("source", source).Parameters
        model = problems.model(("data",), own, parameters, DATA_FIELDS)
        return {} if model is None else model.model_dump(mode="json", by_alias=True)
    problems.model(("data",), own, Form, DATA_FIELDS)
    try:
        there = located(source, base)
    except AuditorError as error:
        problems.add(("data", "source"), f"cannot be used: {error}")
        return {}
    folder = any(path.is_dir() for path in there)
    given = shortened(repr(source), 120)
    bare = split_name(source)[0]
    if not bare.lower().endswith(SUFFIXES) and not (folder and ("/" in bare or "\\" in bare)):
        hint = did_you_mean(source, registry.names("source"))
        if folder:
            hint = f"; write {source + '/'!r} for the folder of that name"
        wanted = f"must be a registered source or a path to {SAID}"
        problems.add(("data", "source"), f"{wanted}; got {given}{hint}")
    elif not there:
        problems.add(("data", "source"), f"names a file that is not there: {given}")
    return {}


# -- Section ``knowledge``: the adversary's knowledge, from YAML or Python -------------------------


KnowledgeError = FormError
"""Invalid knowledge; ``found`` has relative places and messages."""


def parse_knowledge(value: Any) -> Knowledge:
    """Parse a state of knowledge from a scenario or a Python call.

    Raises
    ------
    KnowledgeError
        Invalid knowledge, with the place and the expected form.
    """
    if isinstance(value, Knowledge):
        return value
    knowledge: Knowledge = read_entry(value, KINDS, "a state of knowledge")[1]
    return knowledge
