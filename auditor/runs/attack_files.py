"""Attacks on copies in files, for the command line.

Without a stated law, it is estimated from original and copies, without closed forms. Copies of
categories need a stated law.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from auditor import registry
from auditor.adversary.knowledge import Perfect
from auditor.base import AuditorError, listed, pd
from auditor.base.types import Names, Options, frozen
from auditor.data.columns.checks import kind_of
from auditor.data.copies import copy_file, read_copy
from auditor.data.formats.parts import header
from auditor.data.formats.release_folder import SUFFIXES, table_files
from auditor.data.load import files_of, load_table, read_columns
from auditor.data.source import is_public
from auditor.data.table import DataUse, Table, is_file
from auditor.numerics.random_streams import stream
from auditor.process.containment import plugin_errors
from auditor.results.disclosure import FEWEST_RECORDS, rounded
from auditor.results.files import located, sweep, writing
from auditor.runs.arguments import checked_levels, make_plugin
from auditor.runs.estimate import AnyEstimate, CategoricalEstimate, Estimate, attack, knowledge_of
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
    levels: Sequence[float] = ()
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
    scheme.check_table(table, DataUse(asked.original))
    frames = []
    for name in copies:
        values = read_copy(copy_file(name, None, asked.original), table, exact=True).values
        if np.isnan(values).any():
            lacking = "has missing cells; a scenario with the scheme `published` audits what all copies have in full"
            raise AuditorError(f"{Path(name).name}: {lacking}")
        frames.append(pd.DataFrame(values, columns=list(table.attributes)))
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
        return load_table(DataUse(asked.original, columns), stream(asked.seed, "data"))

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


# -- estimates in words and in files ---------------------------------------------------------------


def described(asked: Request, found: AnyEstimate) -> str:
    """Estimate's quality in words, no sharper than private figures warrant.

    Raises
    ------
    AuditorError
        The table is a file with fewer records than a figure may be of.
    """
    rows, public = len(found.values), is_public(asked.original)
    if not public and rows < FEWEST_RECORDS:
        few = f"has {rows} records, and no figure is told of a private table with fewer than {FEWEST_RECORDS}"
        raise AuditorError(f"{asked.original}: {few}")

    def written(figure: float) -> str:
        return f"{figure if public else rounded(figure, rows):.4g}"

    copies, known = len(asked.copies), knowledge_of(asked.knowledge)
    held = f"{copies} {'copy' if copies == 1 else 'copies'}"
    knows, numeric = f"{known.label} knowledge", isinstance(found, Estimate)
    if isinstance(known, Perfect):
        what = "means and correlations" if numeric else "every category's share"
        knows = f"knows {what} exactly"
    lines = [f"{registry.get('attack', asked.attack).name}, {knows}, {held}, {rows:,} records"]
    if isinstance(found, CategoricalEstimate):
        lines += [
            f"guessed right: {written(100 * found.accuracy)} % of the records",
            f"probability of the true value: {written(found.reconstruction_probability)}, averaged over records",
        ]
        return "\n".join(lines)
    width, theory = found.values.shape[1], "none"
    scale = found.distortion / found.normalized_error if found.normalized_error else 0.0
    if found.theory is not None and scale:
        theory = f"{written(found.theory)} ({written(found.theory / scale)} normalized)"
    if not asked.scheme:
        theory += "; no law of the noise was stated, so it was estimated from original and copies"
    lines += [
        f"normalized error: {written(found.normalized_error)} (0: exact; 1: no better than guessing the mean)",
        f"mean squared error: {written(found.distortion)}, over {width} {'attribute' if width == 1 else 'attributes'}",
        f"closed form: {theory}",
    ]
    return "\n".join(lines)


def check_output(asked: Request, output: str) -> None:
    """Refuse a file that an estimate cannot be written to.

    Raises
    ------
    AuditorError
        Its kind is not written, or it is the original or one of the copies.
    """
    names = [*asked.copies, *([asked.original] if is_file(asked.original) else [])]
    if Path(output).suffix not in SUFFIXES:
        raise AuditorError(f"{output}: a reconstruction is written as {' or '.join(SUFFIXES)}")
    if Path(output).resolve() in [place.resolve() for name in names for place in located(name)]:
        raise AuditorError(
            f"{output}: is one of the files that were read, and would be written over; choose another with --output"
        )


def write_estimate(found: Any, output: str) -> Path:
    """Write the estimate by record to a file that only its owner can read."""
    path = Path(output)
    sweep(path.absolute().parent, (path.name,))
    with writing(path), table_files([path]) as (file,):
        file.append(pd.DataFrame(found.values))
    return path
