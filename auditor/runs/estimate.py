"""Attacks from Python: a reconstruction of numbers or categories, and its error."""

from typing import Any

import numpy as np

from auditor.adversary.attack import Attack
from auditor.adversary.knowledge import Knowledge
from auditor.base import AuditorError
from auditor.base.types import Coalition, Microdata
from auditor.process.containment import with_plugin_errors
from auditor.registry.parameters import FormError, plain
from auditor.runs.arguments import make_plugin
from auditor.runs.estimate_categories import CategoricalEstimate, estimate_categories
from auditor.runs.estimate_numbers import Estimate, estimate_numbers
from auditor.runs.perturb import Release
from auditor.scenario.read_plugins import parse_coalitions, parse_knowledge
from auditor.schemes.draw import checked_seed
from auditor.schemes.replacement.base import UniformScheme

AnyEstimate = Estimate | CategoricalEstimate


@with_plugin_errors
def attack(
    name: str,
    release: Release,
    original: Microdata | None = None,
    coalition: Any = "all",
    knowledge: Any = "perfect",
    seed: int = 0,
    **parameters: Any,
) -> Any:
    """Rebuild the original from a coalition's copies.

    Parameters
    ----------
    name : str
        A registered attack (``auditor list attacks``).
    release : Release
    original : array or DataFrame, optional
        ``X``, for errors and exact moments; by default the release's.
    coalition : list of int or 'all'
        Copy numbers from 1.
    knowledge : str or mapping
        As in a scenario: ``"perfect"``, ``{"estimated": {"rows": 400}}``, ``{"known-records":
        100}``, ``{"known-attributes": ["age"]}``.
    seed : int
        Of the rows that an adversary estimates from or knows.
    **parameters
        The attack's own.

    Returns
    -------
    Estimate or CategoricalEstimate
        The latter of a uniform release: posteriors and best guesses.

    Raises
    ------
    NotApplicable
        The attack does not apply; the message is the reason.
    AuditorError
        A name, a copy number or a parameter is wrong.
    """
    plugin: Attack = make_plugin("attack", name, parameters).form()
    knows, scheme, seed = knowledge_of(knowledge), release.scheme, checked_seed(seed)
    copies = _coalition(coalition, len(release.copies))
    plugin.check(scheme.family, knows)
    estimated = estimate_categories if isinstance(scheme, UniformScheme) else estimate_numbers
    return estimated(plugin, release, original, copies, knows, seed)


def knowledge_of(value: Any) -> Knowledge:
    """State of knowledge that is spelt as in a scenario.

    Raises
    ------
    AuditorError
        It is none.
    """
    try:
        return parse_knowledge(plain(value))
    except FormError as error:
        raise AuditorError(f"knowledge {error}") from None


def _coalition(value: Any, M: int) -> Coalition:
    if isinstance(value, set | frozenset | range):
        value = list(value)
    try:
        entry = parse_coalitions(plain([value] if isinstance(value, int | np.integer) else value))
    except ValueError as error:
        raise AuditorError(f"coalition {error}") from None
    found = list(entry.expand(M, 0))
    if len(found) != 1:
        raise AuditorError("coalition must be one set of copies, as [1, 3] or 'all'")
    return found[0]
