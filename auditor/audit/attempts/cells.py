"""Records of one attack on a numeric release, with one state of knowledge."""

import numpy as np

from auditor.adversary.attack import Attack, LinearAttack, RowAttack
from auditor.adversary.knowledge import Knowledge
from auditor.adversary.published import TreeMoments
from auditor.audit.attempts.linear import linear_errors
from auditor.audit.attempts.opened import Opened
from auditor.audit.attempts.over_rows import row_errors
from auditor.audit.base.request import (
    ALL,
    Attempt,
    CellContext,
    Cells,
    distribution_records,
    error_records,
)
from auditor.audit.measures.entropy import attack_bound_records
from auditor.audit.measures.privacy import (
    Baseline,
    closeness_records,
    errors_alone,
    errors_in_leaves,
    number_records,
    sampled,
    tally_records,
    wanted_tally,
)
from auditor.audit.measures.record_disclosure import Disclosures
from auditor.base import NotApplicable, PluginError
from auditor.results.measurements import Measurements
from auditor.results.records import Measurement, PairedCell, PairedGain


def known_alone_records(
    opened: Opened, context: CellContext, knowledge: Knowledge
) -> list[Measurement]:
    """Figures of an adversary who holds no copy."""
    view, table = opened.gathered.view(knowledge), opened.release.table
    known = view.known_columns.tolist()
    errors = errors_alone(opened.release.moments.covariance, known)
    if isinstance(view.given, TreeMoments):
        X = table.read(0, table.rows)
        tree = view.given.tree
        errors = errors_in_leaves(X, tree.leaf_of(X[:, tree.on]), known)
    return list(number_records(context, knowledge, errors))


def attack_outcome(
    opened: Opened,
    attack: Attack,
    name: str,
    knowledge: Knowledge,
    context: CellContext,
    base: Baseline | None = None,
) -> Attempt:
    """Outcome on every coalition.

    ``name`` is the attack's id in the scenario; ``base`` is for closeness, if requested.
    """
    scenario, release, needed, wanted = (
        opened.scenario,
        opened.release,
        opened.needed,
        opened.wanted,
    )
    opened.gathered.shares.asked = False
    attack.check(release.scheme.family, knowledge)
    if isinstance(attack, LinearAttack) and not opened.release.joint:
        attack = attack.over_rows()
    scale = np.sqrt(np.diag(release.moments.covariance))
    tally = wanted_tally(scenario, scale, release.table)
    if base is not None:
        tally.sample, tally.stride = sampled(scale, base), base.stride
    counters = list[Disclosures]()
    if isinstance(attack, LinearAttack):
        errors = linear_errors(opened, attack, knowledge, tally)
    elif isinstance(attack, RowAttack):
        whole = scenario.measure("records-within")
        tolerance = None if whole is None else float(whole.options["tolerance"])
        counters = [Disclosures(tolerance) for _ in needed]
        errors = row_errors(opened, attack, knowledge, tally, counters)
    else:
        raise NotApplicable(f"{attack.name} is neither a linear nor a row-level attack")
    if not np.isfinite(errors.distortion.value).all():
        raise PluginError("the attack's errors are beyond what double precision can square")
    context, held = context.under(name, knowledge.label), [needed[place] for place in wanted]
    cells = Cells(context, needed, wanted)
    independent = opened.law is None or opened.law.tells_spread
    if isinstance(attack, LinearAttack) and independent and errors.bar == "redraws":
        # the redraws count all draws that the theory averages over, record by record
        if not np.isnan(errors.distortion.theory).all():
            errors = errors._replace(bar="sampling")
    records = tally_records(scenario, cells, tally, release.table)
    if tally.sample is not None and base is not None:
        records += closeness_records(cells, tally.sample, base)
    if scenario.measure("error-bounds") and isinstance(attack, LinearAttack):
        if release.transformed is None:
            records += attack_bound_records(context, attack, knowledge, opened.gathered, held)
    if knowledge.in_clear:
        records += known_alone_records(opened, context, knowledge)
    for place in wanted if counters else ():
        records += counters[place].records(context, needed[place])
    paired = dict[PairedCell, PairedGain]()
    if errors.paired is not None:
        gain, error, degrees = errors.paired
        for place in wanted:
            pairs = zip(gain[place].tolist(), error[place].tolist(), strict=True)
            for attribute, pair in zip((*context.attributes, ALL), pairs, strict=True):
                paired[knowledge.label, name, needed[place], attribute] = (*pair, degrees)
    return Attempt(
        Measurements.of([*error_records(cells, errors), *records]),
        distribution_records(cells, tally),
        paired,
        opened.gathered.shares.asked,
    )
