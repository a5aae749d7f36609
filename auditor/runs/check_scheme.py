"""Check knowledge and each scheme against the table, before a run."""

import numpy as np

from auditor.adversary.attack import expand_all
from auditor.adversary.published import check_knowledge
from auditor.audit.base.request import perturbed_table, release_levels
from auditor.audit.numeric.release import make_scheme
from auditor.base import AuditorError, DataError, PluginFailed
from auditor.data.columns.checks import LARGEST_VARIANCE
from auditor.data.table import Table
from auditor.numerics.blocks import moment_groups
from auditor.process.containment import contained
from auditor.registry.parameters import Problems
from auditor.results import metrics
from auditor.scenario.model import Scenario, SchemeUse
from auditor.schemes.base.noise_law import KroneckerNoise
from auditor.schemes.base.scheme import Scheme, TableMoments, by_engine, table_moments
from auditor.schemes.draw import check_takes_batches, released_grid

MOST_MOMENT_BYTES = 4 * 2**30
MOST_RECORDS = 5_000_000
"""Most rows of results: seven gigabytes of memory, and 200 MB of Parquet."""


def note_refusal(
    failure: contained, path: tuple[str | int, ...], name: str, found: Problems
) -> None:
    """Add a plugin's refusal; the run will record failures."""
    if failure.error is not None and not isinstance(failure.error, PluginFailed):
        found.add(path, f"({name}) cannot be used: {failure.reason}")


def check_states(here: Scenario, table: Table, found: Problems, lead: str = "") -> None:
    """Check that each state of knowledge fits the table."""
    for place, knowledge in enumerate(here.knowledge):
        try:
            check_knowledge(knowledge, table)
        except AuditorError as error:
            more = error.path if isinstance(error, DataError) else ()
            found.add(("knowledge", place, knowledge.name, *more), f"{lead}{error}")


def check_scheme(
    here: Scenario, place: int, use: SchemeUse, table: Table, moments: TableMoments, found: Problems
) -> None:
    """Check a scheme's table, levels, law, size and coalitions."""
    with contained() as failure:
        if use.per_unit:
            table = perturbed_table(use, table)
            moments = table_moments(table)
        levels = release_levels(use, here)
        scheme = make_scheme(use, here.base)
        scheme.check_table(table, here.data)
        make_scheme(use, here.base, table).check_levels(levels)
        if here.data.first_batch is not None and scheme.makes_copies:
            check_takes_batches(scheme)
        part = scheme.audited(table).table
        if part is not table:
            check_states(here, part, found, f"is of what {use.id} has in common with the data: it ")
        copies = scheme.count(levels)
        check_size(scheme, table, copies)
        if use.public_grid:
            released_grid(scheme, table, levels, scale=moments.scale)
        law = scheme.law(levels, moments.scale)
        loudest = max(levels, default=0.0) * float(np.diag(moments.covariance).max(initial=0.0))
        if isinstance(law, KroneckerNoise):
            size = law.level_covariance.max(initial=0.0) * law.shape.max(initial=0.0)
            loudest = float(np.nan_to_num(size, nan=np.inf, posinf=np.inf))
        if not loudest <= LARGEST_VARIANCE:
            raise AuditorError(
                f"noise of variance {loudest:.3g} is beyond what double precision can square"
            )
    if failure.error is not None:
        note_refusal(failure, ("schemes", place), use.id, found)
        return
    possible = len(found.found)
    for number, entry in enumerate(here.coalitions):
        try:
            next(entry.expand(copies, here.seed), None)
        except AuditorError as error:
            found.add(("coalitions", number), f"cannot be had of scheme {use.id}: {error}")
    if len(found.found) > possible:
        return
    each = len(here.knowledge) * len(here.attacks) * here.replicates
    each *= (table.width + 1) * len(metrics.ALWAYS)
    coalitions = max((entry.size(copies) for entry in here.coalitions), default=0)
    if coalitions * each <= MOST_RECORDS:  # a million coalitions need not be named
        coalitions = len(expand_all(here.coalitions, copies, here.seed))
    if coalitions * each > MOST_RECORDS:
        count = (
            f"{coalitions:,} coalitions of scheme {use.id} make {coalitions * each:,} measurements"
        )
        found.add(
            ("coalitions",),
            f"ask for too much: {count}, more than the {MOST_RECORDS:,} allowed; try {{random: 1000}}",
        )


def check_size(scheme: Scheme, table: Table, copies: int) -> None:
    """Refuse numbers with joint moments that do not fit into memory.

    Raises
    ------
    AuditorError
        With the memory that they need; it grows with the square of copies × attributes.
    PluginError
        The scheme names an unknown engine.
    """
    if by_engine({"numeric": False, "categorical": True}, scheme):
        return
    width = table.width
    if width == 0:
        raise AuditorError("the table has no column of numbers to add noise to")
    columns = width * (1 + copies * (scheme.output_width(width) == width))
    size = 8 * columns**2 * (1 + moment_groups(table.rows, width, columns)[-1][-1][0])
    if size > MOST_MOMENT_BYTES:
        raise AuditorError(
            f"{copies:,} copies of {width} attributes need {size / 2**30:,.1f} GiB for their joint moments, more than the "
            f"{MOST_MOMENT_BYTES / 2**30:.0f} GiB allowed; audit fewer copies at a time"
        )
