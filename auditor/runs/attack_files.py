"""Attacks on copies in files, for the command line.

Without a stated law, it is estimated from original and copies, without closed forms. Copies of
categories need a stated law.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from auditor.base import AuditorError, listed, pd
from auditor.base.types import Levels, Names, Options, frozen
from auditor.data.columns.checks import kind_of
from auditor.data.formats.parts import header
from auditor.data.load import files_of, load_table, read_columns
from auditor.data.table import DataUse, Table, is_file
from auditor.numerics.random_streams import stream
from auditor.process.containment import plugin_errors
from auditor.runs.arguments import checked_levels, make_plugin
from auditor.runs.estimate import AnyEstimate, attack
from auditor.runs.perturb import Release


@frozen
class Request:
    """Arguments of one attack.

    ``scheme`` is a name or ``{name: …, …its parameters}``; ``levels`` then has one for each copy.
    ``columns`` are by default all common columns of numbers.
    """

    attack: str
    copies: Names
    original: str
    scheme: Any = None
    levels: Levels = ()
    columns: Names | None = None
    knowledge: Any = "perfect"
    seed: int = 0
    parameters: Options | None = None


def attack_files(asked: Request) -> AnyEstimate:
    """Estimate from all copies together.

    Raises
    ------
    AuditorError
        A file cannot be read, the copies are not the original's records, or the request does not
        apply.
    """
    with plugin_errors():
        release = _release(asked)
    options = {"knowledge": asked.knowledge, "seed": asked.seed, **(asked.parameters or {})}
    found: AnyEstimate = attack(asked.attack, release, **options)
    return found


def _release(asked: Request) -> Release:
    if asked.scheme is None:
        return _numbers(asked, {})
    law = asked.scheme if isinstance(asked.scheme, Mapping) else {"name": asked.scheme}
    rest = {key: value for key, value in law.items() if key != "name"}
    scheme = make_plugin("scheme", law.get("name", ""), rest)
    if len(asked.levels) != len(asked.copies):
        raise AuditorError(
            f"a scheme needs the level of each of {len(asked.copies)} copies; got {len(asked.levels)}"
        )
    if scheme.adds_noise:
        return _numbers(asked, {"law": {"scheme": scheme.name, **rest}})
    if scheme.engine != "categorical":
        raise AuditorError(
            f"copies by {scheme.name} are attacked from Python, or by a scenario; here by schemes that add noise or replace"
        )
    return _categories(asked, scheme)


def _numbers(asked: Request, law: Options) -> Release:
    copies = [str(Path(name).expanduser()) for name in asked.copies]
    scheme = make_plugin("scheme", "published", {"copies": copies, **law})
    table, levels = _original(asked), tuple(asked.levels)
    if law:
        scheme.check_levels(levels)
    scheme.check_table(table, DataUse.model_construct(source=asked.original))
    frames = []
    for copy in scheme.read(table, True):
        if np.isnan(copy.values).any():
            lacking = "has missing cells; a scenario with the scheme `published` audits what all copies have in full"
            raise AuditorError(f"{copy.name}: {lacking}")
        frames.append(pd.DataFrame(copy.values, columns=list(table.attributes)))
    X = pd.DataFrame(table.values, columns=list(table.attributes))
    return Release(X, tuple(frames), levels, scheme)


def _categories(asked: Request, scheme: Any) -> Release:
    names = list(asked.columns or _shared(asked, header(files_of(asked.original)[0])))
    original = read_columns(asked.original, names).astype("category")
    typed = []
    for path in asked.copies:
        copy, name = read_columns(path, names), Path(path).name
        if len(copy) != len(original):
            unequal = f"has {len(copy):,} rows where the original has {len(original):,}; rows must match one to one"
            raise AuditorError(f"{name}: {unequal}")
        if not all(copy[column].isin(original[column].cat.categories).all() for column in names):
            raise AuditorError(f"{name}: has values that the original has not, or missing cells")
        typed.append(copy.astype(original.dtypes))
    return Release(original, tuple(typed), checked_levels(list(asked.levels), 0, scheme), scheme)


def _original(asked: Request) -> Table:
    def read(columns: Names | None) -> Table:
        use = DataUse.model_construct(source=asked.original, columns=columns)
        return load_table(use, stream(asked.seed, "data"))

    if asked.columns is not None:
        return read(asked.columns)
    if not is_file(asked.original):
        return read(_shared(asked, read(None).attributes))
    shared = _shared(asked, header(files_of(asked.original)[0]))
    frame = read_columns(asked.original, shared)
    return read([name for name in shared if kind_of(frame[name]) == "numbers"] or shared)


def _shared(asked: Request, known: Names) -> list[str]:
    heads = [header(files_of(name)[0]) for name in asked.copies]
    shared = [name for name in known if all(name in head for head in heads)]
    if not shared:
        raise AuditorError(f"the copies have none of the original's columns, {listed(known)}")
    return shared
