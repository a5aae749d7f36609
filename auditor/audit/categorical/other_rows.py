"""Attack ``fitted-to-originals`` on categories in files, by learners.

Each half of the records is predicted by boosted trees and a logistic regression fitted to the other
half. Their features:

| feature | finds |
| --- | --- |
| all audited columns of all copies | dependence on other columns (latent classes) |
| two or three columns that interact, also row numbers' remainders | values shifted by others |
| sums and differences of copies modulo the number of values | split values |
| columns of feature families (``of_codes``) | shown columns, households, row numbers |
| cells of conspicuous other rows, and number equal to the record's | moved rows, shared noise |

Other rows are conspicuous if a column's values predict a record's value, or if their noise predicts
its noise ``[y_t = v] − T[x_t, v]``, with T the copy's shares given the original.

*Not checked*: rows beyond ``MOST_ROWS``, values rarer than the commonest ``MOST_VALUES``, sets of
four columns or more.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import chain, combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.adversary.knowledge import Perfect
from auditor.audit.categorical.posterior_pass import CERTAIN
from auditor.audit.categorical.release import UniformRelease
from auditor.audit.insider.category_gain import by_agreement
from auditor.audit.insider.feature import FEW, MOST_PAIRED, Known, Shown, alike_codes, units_of
from auditor.audit.insider.features.other_rows import PERIODS, distances
from auditor.audit.insider.fitted import fitted_records, folds_of
from auditor.audit.insider.learner import SURELY, families
from auditor.audit.measures.privacy import Baseline, of_records
from auditor.audit.measures.released_as_is import unused_figures
from auditor.base.types import Array, Coalition, Indices, Integers
from auditor.data.columns.categorical_table import split
from auditor.data.table import ShownColumn, Table
from auditor.numerics.statistics import standardised
from auditor.results.records import FITTED, KEPT, Measurement

MOST_ROWS, FEWEST_ROWS = 10_000, 200
"""Most and fewest records that trees are fitted to and judged on."""
MOST_VALUES, MOST_CODES = 32, 255
"""Most values of an attribute, and codes that trees take as categories."""
STAGES = (8, 20, 60)
"""Candidate numbers of trees for each value."""
TREES = 480
"""Most trees of one attribute, over all values."""
MOST_SUMMED, MOST_COPIES = 3, 12
"""Most copies that are summed modulo the number of values, and that are features."""
MOST_SEARCHED = 2**16
"""Most rows in which another column is searched for other rows' values."""
RIGHT, FEWEST_KEPT = 0.99, 50
"""Accuracy and fewest close guesses that count as kept."""


def fitted_category_records(
    release: UniformRelease, shown: Sequence[ShownColumn]
) -> list[Measurement]:
    """Errors of single copies and of all together, by attribute."""
    data = release.data
    if data.rows < FEWEST_ROWS:
        return []
    rows = np.arange(data.rows)[:: -(-data.rows // MOST_ROWS)]
    everybody = tuple(sorted({*chain(*release.coalitions)}))
    held = release.rows(everybody, [(0, data.rows)])[1:]
    files = dict(zip(everybody, held, strict=True))
    copies = {k: split(data, codes) for k, codes in files.items()}
    originals = [x.astype(np.intp) for x in split(data, data.codes)]
    moved = {k: elsewhere(originals, cells) for k, cells in copies.items()}
    asked = [one for one in release.coalitions if len(one) == 1 or one == everybody]
    several, found = len(data.attributes) > 1 or bool(_numbers(release)), list[Measurement]()
    for one in asked[: MOST_COPIES + 1]:
        few = one[:MOST_COPIES]
        beside = [(each.name, each.values) for each in shown if each.copy in (0, *one)]
        codes = [column for k in few for cells in (copies[k], *moved[k]) for column in cells]
        units = units_of(beside, data.rows)[rows]
        for place, (attribute, x) in enumerate(zip(data.attributes, originals, strict=True)):
            own = [copies[k][place].astype(np.intp) for k in few]
            equal = [
                np.sum([cells[place] == y for cells in moved[k]], axis=0)
                for k, y in zip(few, own, strict=True)
                if moved[k]
            ]
            P = predicted(x, attribute.size, own, [*codes, *equal], beside, rows)
            name = attribute.name if several else "*"
            found += _records(release, one, name, x[rows], *P, [y[rows] for y in own], units)
    return found


def predicted(
    x: Indices,
    size: int,
    own: Sequence[Indices],
    codes: Sequence[Any],
    beside: Sequence[tuple[str, NDArray[Any]]],
    rows: Indices,
) -> tuple[Array, Array]:
    """Cross-fitted probabilities of values, shapes (len(rows), size).

    With the least squared error, and with the best close guesses.

    Parameters
    ----------
    x : ndarray of shape (n,)
    size : int
        Number of values.
    own, codes : sequences of ndarrays of shape (n,)
        The attribute in the copies, and codes of all columns and of conspicuous other rows.
    """
    # costs a second
    from sklearn.ensemble import HistGradientBoostingClassifier

    prior = np.bincount(x[rows], minlength=size) / len(rows)
    common = np.argsort(-prior, kind="stable")[:MOST_VALUES]
    # rarer values are one class, shared out by frequency
    classes = np.full(size, len(common))
    classes[common] = np.arange(len(common))
    within = np.zeros((len(common) + 1, size))
    within[classes, np.arange(size)] = prior
    within /= np.maximum(within.sum(axis=1, keepdims=True), 1e-300)
    P = np.tile(prior, (len(STAGES) + 2, len(rows), 1))
    hits, cells = ((codes[:, None] == common).astype(np.float64) for codes in (x, own[0]))
    shown = Shown(cells[:, None], beside=[*alike_codes(beside, cells[:, :FEW]), *beside])
    parts = folds_of(shown.units[rows])
    for taught, tested in zip(parts, parts[::-1], strict=True):
        y = classes[x[rows[taught]]]
        met = np.unique(y)
        if len(met) < 2:
            continue
        features, are_codes = features_of(size, own, codes, shown, hits, rows, taught, y)
        trees = HistGradientBoostingClassifier(
            max_iter=min(STAGES[-1], max(STAGES[0], TREES // len(met))),
            max_leaf_nodes=8,
            learning_rate=0.12,
            min_samples_leaf=20,
            l2_regularization=1.0,
            categorical_features=are_codes,
            early_stopping=False,
            random_state=0,
        ).fit(features[taught], y)
        chances = list(trees.staged_predict_proba(features[tested]))
        some = [column[rows] for column in codes]
        few = [column == v for column in some for v in np.unique(column)[:MOST_VALUES]]
        numbers = features.T[~np.array(are_codes) & np.isfinite(features).all(axis=0)]
        once = np.unique(shown.units[rows[taught]], return_index=True)[1]
        model, A = line([*few, *numbers], y, taught, once)
        chances.append(model.predict_proba(A[tested]))
        places = *(min(stage, len(chances) - 1) - 1 for stage in STAGES), -1
        for place, found in zip(places, P[:-1], strict=True):
            found[tested] = chances[place] @ within[met]
        gates = [v for _, v in shown.beside if v.dtype.kind != "U"]
        agree = by_agreement(x, own, size, rows[taught], rows[tested], gates).toarray().clip(0, 1)
        agree /= np.maximum(agree.sum(axis=1, keepdims=True), 1.0)
        others = np.where(agree > 0, 0.0, prior)
        others /= np.maximum(others.sum(axis=1, keepdims=True), 1e-300)
        P[-1][tested] = agree + (1.0 - agree.sum(axis=1, keepdims=True)) * others
    truth = x[rows]
    errors = [(found**2).sum() - 2 * found[np.arange(len(rows)), truth].sum() for found in P]
    # a claim at this belief pays on average if beliefs are right
    pays = np.where(P.argmax(axis=2) == truth, 1.0, CERTAIN / (CERTAIN - 1.0))
    paid = np.where(P.max(axis=2) >= CERTAIN, pays, 0.0).sum(axis=1)
    return P[int(np.argmin(errors))], P[int(np.argmax(paid))]


def features_of(
    size: int,
    own: Sequence[Indices],
    codes: Sequence[Any],
    shown: Shown,
    hits: Array,
    rows: Indices,
    taught: Indices,
    y: Indices,
) -> tuple[Array, list[bool]]:
    """Columns for trees, (len(rows), f), and whether each is a code; indicators of values, (n, s)."""
    found = list(codes)
    for signs in product((1, 0, -1), repeat=min(len(own), MOST_SUMMED)):
        used = [sign for sign in signs if sign]
        if len(used) > 1 and used[0] > 0:
            total = sum(sign * y for sign, y in zip(signs, own, strict=False) if sign)
            found += [total % size, -total % size]
    few = [v for _, v in shown.beside if v.dtype.kind in "iu" and v.max() < MOST_VALUES][:FEW]
    places = [np.arange(len(hits)) % k for k in range(2, PERIODS)]
    columns = [*own[:MOST_SUMMED], *codes][:MOST_COPIES]
    some = [*combinations([*columns, *few], 2), *product(own[:1], places)]
    found += telling([*some, *combinations(columns[: 2 * MOST_SUMMED], 3)], rows[taught], y)
    for link in shown.links:
        found += [np.where(link < 0, 0, y[link] + 1) for y in (*own, *few)]
    learnt, from_them = taught[folds_of(shown.units[rows[taught]])[0]], list[Any]()
    for family in families():
        for j in range(hits.shape[1] if family.learns else 1) if family.of_codes else ():
            known = Known(j, hits, 0.0, hits[:, j]).only(rows[learnt])
            columns_of = from_them if family.learns else found
            columns_of += [column(shown) for _, column in family.columns(shown, known)]
    found, from_them = ([column[rows] for column in each] for each in (found, from_them))
    several = [*{v.tobytes(): v for v in found}.values()]
    values = np.column_stack([v.astype(np.float64) for v in (*several, *from_them)])
    # a column learnt from originals fits these rows too well
    values[learnt, len(several) :] = np.nan
    several += from_them
    return values, [v.dtype.kind in "iu" and int(v.max()) < MOST_CODES for v in several]


def line(columns: Sequence[Array], y: Indices, taught: Indices, once: Indices) -> tuple[Any, Array]:
    """Logistic regression on columns that surely correlate with a value, and these columns.

    ``once``: places in ``taught`` of records of different units.
    """
    from sklearn.linear_model import LogisticRegression

    A = standardised(np.column_stack(columns), 1e-9)
    hit = standardised((y[once, None] == np.unique(y)).astype(np.float64), 1e-9)
    r = np.abs(standardised(A[taught[once]], 1e-9).T @ hit).max(axis=1) / np.sqrt(len(once))
    A = A[:, r >= min(SURELY, r.max())]
    return LogisticRegression(max_iter=100).fit(A[taught], y), A


def telling(sets: Iterable[Sequence[Any]], taught: Indices, y: Indices) -> list[Indices]:
    """Joint codes that say most about y beyond each code alone, by the G test.

    Examples
    --------
    >>> u, v, w = np.random.default_rng(0).integers(0, 5, (3, 400))
    >>> sets, rows = [(u, w), (u, v)], np.arange(400)
    >>> [int(code.max()) for code in telling(sets, rows, (u + v) % 5)], telling(sets, rows, w % 2)
    ([24], [])
    """
    found, values = [], int(y.max()) + 1

    def said(codes: Indices) -> float:
        counts = np.bincount(codes), np.bincount(codes * values + y)
        every, cells = (float(each @ np.log(np.maximum(each, 1))) for each in counts)
        return 2.0 * (cells - every)

    for some in sets:
        each = [codes[taught].astype(np.intp) for codes in some]
        sizes = [int(codes.max()) + 1 for codes in some]
        if min(sizes) > 1 < values and math.prod(sizes) < MOST_CODES:
            joint = np.ravel_multi_index(each, sizes)
            degrees = (math.prod(sizes) - 1.0 - sum(sizes) + len(sizes)) * (values - 1.0)
            alone = sum(map(said, each)) - (len(each) - 1) * said(0 * joint)
            z = (said(joint) - alone - degrees) / np.sqrt(2.0 * degrees)
            found.append((z, some, sizes))
    best = [one for one in sorted(found, key=lambda one: -one[0])[:MOST_PAIRED] if one[0] > SURELY]
    return [
        np.ravel_multi_index([codes.astype(np.intp) for codes in some], sizes)
        for _, some, sizes in best
    ]


def _records(
    release: UniformRelease,
    coalition: Coalition,
    name: str,
    x: Indices,
    P: Array,
    close: Array,
    shows: Sequence[Indices],
    units: Indices,
) -> list[Measurement]:
    context, n = release.context.under(FITTED, "perfect"), len(x)
    shares = np.bincount(x, minlength=P.shape[1]) / n
    variance = 1.0 - float(shares @ shares)
    if variance <= 0:
        return []
    errors = ((P**2).sum(axis=1) - 2.0 * P[np.arange(n), x] + 1.0) / variance
    found = {"normalized_error": (errors, (0.0, np.inf))}
    best, certain = P.argmax(axis=1), P.max(axis=1) >= CERTAIN
    if release.scenario.asks_closeness:
        right = (close.argmax(axis=1) == x) & (close.max(axis=1) >= CERTAIN)
        gain = 1.0 * right - (shares.max() >= CERTAIN) * (shares.argmax() == x)
        found["close"] = gain, (-1.0, 1.0)
    certain &= np.any([y == best for y in shows], axis=0) & (shares.max() < CERTAIN)
    made = release.scheme.makes_copies  # then shown columns hold the value, not the copy
    if not made and certain.sum() >= FEWEST_KEPT and (best == x)[certain].mean() >= RIGHT:
        found[KEPT] = certain.astype(np.float64), (0.0, 1.0)
    return [
        context.estimate(
            metric,
            coalition,
            float(each.mean()),
            mean_error(each, units),
            bounds=bounds,
            attribute=name,
        )
        for metric, (each, bounds) in found.items()
    ]


def mean_error(values: Array, units: Indices) -> float:
    """Standard error of a mean over records, those of one unit together.

    Examples
    --------
    >>> values = np.array([0.0, 0.0, 1.0, 1.0])
    >>> mean_error(values, np.arange(4)), round(mean_error(values, np.array([0, 0, 1, 1])), 3)
    (0.25, 0.354)
    """
    return float(np.linalg.norm(np.bincount(units, values - values.mean())) / len(values))


def elsewhere(x: Sequence[Integers], y: Sequence[Integers]) -> list[list[Integers]]:
    """Columns of other rows, where one shows records' values or shares their noise, (n,).

    Examples
    --------
    >>> x, z = np.random.default_rng(0).integers(0, 4, (2, 400))
    >>> [[bool((cells[1] == x).all()) for cells in elsewhere([x], [z, y])] for y in (np.roll(x, 3), x)]
    [[True], []]
    """
    rows, found = np.arange(len(x[0])), list[tuple[int, int]]()
    for (a, original), (b, copy) in product(enumerate(x), enumerate(y)):
        counts = [np.bincount(codes).astype(np.float64) for codes in (original, copy)]
        common = [np.argsort(-each, kind="stable")[:MOST_VALUES] for each in counts]
        if a == b:
            common = [common[0]] * 2
        of_x, of_y = (
            (codes[:, None] == some).astype(np.float64)
            for codes, some in zip((original, copy), common, strict=True)
        )
        centred = [part - part.mean(axis=0) for part in (of_x, of_y)]
        if a == b:
            shares = np.stack([np.bincount(original, part) for part in of_y.T], axis=1)
            noise = of_y - (shares / np.maximum(counts[0], 1.0)[:, None])[original]
            found += [*distances(*centred), *distances(noise, noise)]
        else:  # of the commonest value
            one, few = centred[0][:MOST_SEARCHED, :1], centred[1][:MOST_SEARCHED].T[:FEW]
            found += [step for each in few for step in distances(one, each[:, None])]
    shifts = [*dict.fromkeys(found)][:MOST_PAIRED]
    return [[cells[step * (rows + k) % len(rows)] for cells in y] for step, k in shifts]


def insider_records(release: UniformRelease) -> list[Measurement]:
    """Figures of an insider with all audited and shown columns; drawn copies have a proved law."""
    scheme, table, found = release.scheme, release.table, list[Measurement]()
    perfect = any(isinstance(state, Perfect) for state in release.scenario.knowledge)
    shown = [*scheme.shown(table), *table.shown, *table.key_columns]
    if perfect and not table.streamed and (shown or not scheme.makes_copies):
        found += fitted_category_records(release, shown)
        if numbers := _numbers(release):
            part = table.part(np.arange(table.rows), np.array(numbers))
            found += numbers_beside(release, part, shown)
    alone = (column.name for column in table.shown)
    return [*found, *unused_figures(release.context, scheme, table, found, alone)]


def _numbers(release: UniformRelease) -> list[int]:
    """Places of unbinned numbers."""
    places = enumerate(release.table.attributes) if not release.scheme.makes_copies else ()
    return [place for place, name in places if name not in release.data.names]


def numbers_beside(
    release: UniformRelease, table: Table, shown: Sequence[ShownColumn]
) -> list[Measurement]:
    """Figures of the table's columns of numbers that the files show."""
    scheme = release.scheme
    copies, X = [codes.astype(np.uint32) for codes in scheme.handed_in(release.table)], table.values
    cells = np.zeros((len(copies), *X.shape))
    beside = []
    for column in shown:
        if column.name in table.attributes and column.values.dtype.kind == "f":
            cells[column.copy - 1, :, table.attributes.index(column.name)] = column.values
        else:
            beside.append(column)
    for number, codes in enumerate(copies, start=1):
        parts = zip(release.data.names, split(release.data, codes), strict=True)
        beside += [ShownColumn(number, name, part.astype(np.intp)) for name, part in parts]
    context = release.context.of_columns(table.attributes, X.var(axis=0))
    steps = table.resolution.steps

    def closeness(X: Array, rows: Indices) -> Baseline:
        return of_records(X, table.attributes, release.scenario.data.tolerance)

    asks = closeness if release.scenario.asks_closeness else None
    return fitted_records(context, X, list(cells), release.coalitions, steps, beside, asks)
