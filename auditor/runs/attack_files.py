"""One attack on copies in files: what ``auditor.attack`` does, for whoever has files and no Python at hand.

Copies of numbers are laid beside the original as the scheme ``published`` does it, with its checks
that they are the original's records in its order. With a stated law the attack uses that, and there
is a closed form if the attack has one; without, it uses the law that is estimated from original and
copies, if there is any. Copies of categories need a stated law.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from auditor import registry
from auditor.adversary.knowledge import Perfect
from auditor.audit.numeric.estimated_noise import estimated_noise
from auditor.data.columns.checks import kind_of
from auditor.data.copies import read_copy
from auditor.data.formats.file_kinds import SAID
from auditor.data.formats.readers import header
from auditor.data.formats.release_folder import SUFFIXES, TableFiles
from auditor.data.load import load_table, read_columns
from auditor.data.request import DataUse, is_file
from auditor.data.source import is_public
from auditor.data.table import Table
from auditor.errors import AuditorError
from auditor.numerics.moments import Moments
from auditor.numerics.random_streams import stream
from auditor.process.containment import with_plugin_errors
from auditor.process.deferred import pd
from auditor.results.disclosure import FEWEST_RECORDS, rounded
from auditor.results.files import located, sweep, writing
from auditor.runs.estimate import Estimate, Held, attack, knowledge_of, measured
from auditor.runs.perturb import Release, checked_levels, make_plugin
from auditor.schemes.base.noise_law import NoiseLaw
from auditor.schemes.base.scheme import TableMoments, table_moments
from auditor.text.column_names import listed
from auditor.types import Array


@dataclass(frozen=True)
class Request:
    """What is asked for.

    Attributes
    ----------
    attack : str
        A registered attack; ``parameters`` are its own.
    copies : sequence of str
        Files, in order of release.
    original : str
        A file, or a registered source.
    scheme : str or mapping, optional
        Whose law the copies follow: its name, or ``{name: …, …its parameters}``. ``levels`` then
        has one for each copy.
    columns : sequence of str, optional
        To rebuild; by default every column of numbers that the original and all copies have.
    knowledge : str or mapping
        As in a scenario.
    """

    attack: str
    copies: Sequence[str]
    original: str
    scheme: Any = None
    levels: Sequence[float] = ()
    columns: Sequence[str] | None = None
    knowledge: Any = "perfect"
    seed: int = 0
    parameters: Mapping[str, Any] | None = None


@with_plugin_errors
def attack_files(asked: Request) -> Any:
    """Return what the attack makes of all copies together, and how far it is from the original.

    Returns
    -------
    Estimate or CategoricalEstimate
        As of ``auditor.attack``; without a stated law there is no closed form.

    Raises
    ------
    AuditorError
        A file cannot be read, the copies are not the original's records, or what is asked for does
        not apply.
    """
    law = asked.scheme if isinstance(asked.scheme, Mapping) else {"name": asked.scheme}
    rest = {key: value for key, value in law.items() if key != "name"}
    if asked.scheme is None:
        return _on_numbers(asked, None)
    scheme = make_plugin("scheme", law.get("name", ""), rest)
    if len(asked.levels) != len(asked.copies):
        raise AuditorError(
            f"a scheme needs the level of each of {len(asked.copies)} copies; got {len(asked.levels)}"
        )
    if scheme.adds_noise:
        return _on_numbers(asked, {"scheme": scheme.name, **rest})
    if scheme.engine != "categorical":
        raise AuditorError(
            f"copies by {scheme.name} are attacked from Python, or by a scenario; here by schemes that add noise or replace"
        )
    return _on_categories(asked, scheme)


def _on_numbers(asked: Request, law: dict[str, Any] | None) -> Estimate:
    copies = [str(Path(name).expanduser()) for name in asked.copies]
    scheme = make_plugin(
        "scheme", "published", {"copies": copies, **({} if law is None else {"law": law})}
    )
    plugin, knows = (
        make_plugin("attack", asked.attack, asked.parameters or {}).form(),
        knowledge_of(asked.knowledge),
    )
    plugin.check(scheme.family, knows)
    table = _original(asked)
    if law is not None:
        scheme.check_levels(asked.levels)
    scheme.check_table(table, DataUse(asked.original))
    arrays = [read_copy(Path(name), table, exact=True).values for name in copies]
    for name, copy in zip(copies, arrays, strict=True):
        if np.isnan(copy).any():
            lacking = "has missing cells; a scenario with the scheme `published` audits what all copies have in full"
            raise AuditorError(f"{Path(name).name}: {lacking}")
    moments = table_moments(table)
    stated = scheme.law(tuple(asked.levels), moments)
    used = _estimated(table, moments, arrays) if stated is None else stated
    held = Held(
        scheme, table, moments, tuple(range(1, len(copies) + 1)), tuple(asked.levels), arrays, used
    )
    found = measured(
        plugin, held, pd.DataFrame(table.values, columns=list(table.attributes)), knows, asked.seed
    )
    # under an estimated law it would prove nothing
    return found if stated is not None else replace(found, theory=None)


def _estimated(table: Table, moments: TableMoments, copies: Sequence[Array]) -> NoiseLaw | None:
    """Return the law that original and copies show, as an audit of published copies has it; None where noise depends on the data."""
    stacked = np.hstack([table.values, *copies]) - np.tile(moments.mean, len(copies) + 1)
    found = estimated_noise([Moments.of(stacked)], moments)
    return None if found is None else found.law


def _on_categories(asked: Request, scheme: Any) -> Any:
    names = list(asked.columns or _shared(asked, header(_found(asked.original))))
    original = read_columns(asked.original, names).astype("category")
    copies = [read_columns(name, names) for name in asked.copies]
    for name, copy in zip(asked.copies, copies, strict=True):
        if len(copy) != len(original):
            unequal = f"has {len(copy):,} rows where the original has {len(original):,}; rows must match one to one"
            raise AuditorError(f"{Path(name).name}: {unequal}")
        if not all(copy[column].isin(original[column].cat.categories).all() for column in names):
            raise AuditorError(
                f"{Path(name).name}: has values that the original has not, or missing cells"
            )
    typed = tuple(copy.astype(original.dtypes) for copy in copies)
    release = Release(original, typed, checked_levels(list(asked.levels), 0, scheme), scheme)
    return attack(
        asked.attack,
        release,
        knowledge=asked.knowledge,
        seed=asked.seed,
        **(asked.parameters or {}),
    )


def _original(asked: Request) -> Table:
    """Return the table, with the columns of numbers that all copies have."""

    def read(columns: Sequence[str] | None) -> Table:
        return load_table(asked.original, columns=columns, rng=stream(asked.seed, "data"))

    if asked.columns is not None:
        return read(asked.columns)
    if not is_file(asked.original):
        return read(_shared(asked, read(None).attributes))
    shared = _shared(asked, header(_found(asked.original)))
    frame = read_columns(asked.original, shared)
    return read([name for name in shared if kind_of(frame[name]) == "numbers"] or shared)


def _shared(asked: Request, known: Sequence[str]) -> list[str]:
    """Return the columns that all copies have, in the original's order."""
    heads = [header(_found(name)) for name in asked.copies]
    shared = [name for name in known if all(name in head for head in heads)]
    if not shared:
        raise AuditorError(f"the copies have none of the original's columns, {listed(known)}")
    return shared


def _found(name: str) -> Path:
    path = next((path for path in located(name) if path.is_file()), None)
    if path is None:
        raise AuditorError(f"{name}: no such file; expected {SAID}")
    return path


def described(asked: Request, found: Any) -> str:
    """Return how good an estimate is; of a private table no sharper than its records warrant.

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

    held = f"{len(asked.copies)} {'copy' if len(asked.copies) == 1 else 'copies'}"
    exactly = (
        "knows means and correlations exactly"
        if isinstance(found, Estimate)
        else "knows every category's share exactly"
    )
    known = knowledge_of(asked.knowledge)
    knows = exactly if isinstance(known, Perfect) else f"{known.label} knowledge"
    lines = [f"{registry.get('attack', asked.attack).name}, {knows}, {held}, {rows:,} records"]
    if isinstance(found, Estimate):
        width = found.values.shape[1]
        scale = found.distortion / found.normalized_error if found.normalized_error else 0.0
        theory = (
            f"{written(found.theory)} ({written(found.theory / scale)} normalized)"
            if found.theory is not None and scale
            else "none"
        )
        unstated = (
            ""
            if asked.scheme
            else "; no law of the noise was stated, so it was estimated from original and copies"
        )
        lines += [
            f"normalized error: {written(found.normalized_error)} (0: exact; 1: no better than guessing the mean)",
            f"mean squared error: {written(found.distortion)}, over {width} {'attribute' if width == 1 else 'attributes'}",
            f"closed form: {theory}{unstated}",
        ]
    else:
        lines += [
            f"guessed right: {written(100 * found.accuracy)} % of the records",
            f"probability of the true value: {written(found.reconstruction_probability)}, averaged over records",
        ]
    return "\n".join(lines)


def check_output(asked: Request, output: str) -> None:
    """Refuse a file that a reconstruction cannot be written to, before there is one.

    Raises
    ------
    AuditorError
        It is of no kind that is written, or is the original or one of the copies.
    """
    read = [
        place.resolve()
        for name in (*asked.copies, *([asked.original] if is_file(asked.original) else []))
        for place in located(name)
    ]
    if Path(output).suffix not in SUFFIXES:
        raise AuditorError(f"{output}: a reconstruction is written as {' or '.join(SUFFIXES)}")
    if Path(output).resolve() in read:
        raise AuditorError(
            f"{output}: is one of the files that were read, and would be written over; choose another with --output"
        )


def write_estimate(found: Any, output: str) -> Path:
    """Write the reconstruction, record by record, to a file that its owner alone can read."""
    path = Path(output)
    sweep(path.absolute().parent, (path.name,))
    with writing(path), TableFiles([path]) as files:
        files.append(0, pd.DataFrame(found.values))
    return path
