"""Utility of copies: models, moments, and the geometry of the records.

| metric | meaning |
| --- | --- |
| ``utility_<model>`` | accuracy (a class) or R² (a number) of a model trained on a copy, cross-validated |
| ``utility_loss_<model>`` | the original's score less the copy's, on equal folds |
| ``utility_mean_error`` | root mean square difference of means, in standard deviations |
| ``utility_covariance_error`` | ``‖K_Y − K_X‖ / ‖K_X‖`` (Frobenius), attributes in standard deviations |
| ``utility_correlation_error`` | root mean square difference of the correlations |

Copies and schemes share folds. li2012, Fig. 4, trains and tests on the copy: ``test: copy``.

Geometry is measured on sampled rows, independent of a copy's unit.

| metric | meaning | best |
| --- | --- | --- |
| ``geometry_distances`` | coefficient of variation of ``‖y_i − y_j‖ / ‖x_i − x_j‖`` over pairs | 0 |
| ``geometry_neighbours`` | share of records with an equal nearest neighbour | 1 |
| ``geometry_clusters`` | adjusted Rand index of 4-means on the copy and on the original | 1 |
"""

import json
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.audit.base.request import CellContext, Cells
from auditor.base import AuditorError, scipy
from auditor.base.types import Array, Arrays, Block, Flags, Indices
from auditor.data.load import load_target
from auditor.data.table import Table, is_file, remembered
from auditor.numerics.linear_algebra import correlation
from auditor.numerics.random_streams import stream
from auditor.registry import get
from auditor.results.records import Measurement
from auditor.scenario.model import Scenario, Utility

Labels = NDArray[Any]
Folds = Sequence[tuple[Indices, Indices]]

LABEL = "label"
"""Target that stands for the class of a source, for scenarios with several sources."""


def model(name: str, classes: bool) -> Any:
    """Untrained scikit-learn model, for features of mean 0 and variance 1.

    Raises
    ------
    AuditorError
        Logistic regression predicts classes only.
    """
    from sklearn import linear_model, svm, tree  # a second to import

    if name == "logistic":
        if not classes:
            raise AuditorError(f"{name} predicts classes, and the target is a number")
        return linear_model.LogisticRegression(max_iter=1000)
    if name == "decision-tree":
        kind = tree.DecisionTreeClassifier if classes else tree.DecisionTreeRegressor
        return kind(random_state=0)
    if name == "svm-rbf":
        return svm.SVC() if classes else svm.SVR()
    assert name == "ridge"
    return linear_model.RidgeClassifier() if classes else linear_model.Ridge()


def target_name(scenario: Scenario) -> str:
    """Name of the column to predict."""
    assert scenario.utility is not None
    assert scenario.utility.target is not None
    target, source = scenario.utility.target, scenario.data.source
    labels = () if target != LABEL or is_file(source) else get("source", source).labels
    return str(labels[0]) if labels else target


def target_of(scenario: Scenario, table: Table) -> Labels:
    """Column to predict, shape (n,), of the table or its source."""
    return column_of(scenario, table, target_name(scenario))


def column_of(scenario: Scenario, table: Table, name: str) -> Labels:
    """Any column of the data, shape (n,), in the table's records."""
    if name in table.attributes:
        return table.values[:, table.attributes.index(name)]
    key = json.dumps([scenario.data.spec(), str(scenario.base), scenario.seed, name])
    rng = stream(scenario.seed, "data")
    return table.cut_out(
        remembered(key, lambda: load_target(scenario.data, name, rng, scenario.base))
    )


def utility_problems(
    scenario: Scenario, table: Table
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield obstacles to utility: a place below ``utility``, and a message."""
    use = scenario.utility
    if use is None or use.target is None:
        return
    target = target_name(scenario)
    if list(table.attributes) == [target]:
        yield ("target",), f"leaves nothing to predict {target!r} from"
        return
    try:
        labels = target_of(scenario, table)
    except AuditorError as error:
        yield ("target",), f"cannot be used: {error}"
        return
    if len(labels) != table.rows:
        yield ("target",), f"has {len(labels):,} records where the table has {table.rows:,}"
        return
    classes = is_class(labels)
    for place, name in enumerate(use.models):
        if name == "logistic" and not classes:
            yield ("models", place), "predicts classes, and the target is a number"
    most, fewest = "half the records, for R² of one record is nothing", table.rows // 2
    if classes:
        most = "the records of the smallest class"
        fewest = int(np.unique(labels, return_counts=True)[1].min())
    if fewest < use.folds:
        yield ("folds",), f"must be at most {most}, {fewest}; got {use.folds}"


def is_class(labels: Labels) -> bool:
    """Whether a target is a class rather than a number."""
    return labels.dtype.kind != "f"


def folds_of(labels: Labels, use: Utility, seed: int, replicate: int) -> Folds:
    """(training rows, test rows) of each fold; classes are stratified."""
    from sklearn.model_selection import KFold, StratifiedKFold

    state = int(stream(seed, "utility", replicate).integers(2**31))
    splitter = StratifiedKFold if is_class(labels) else KFold
    folds = splitter(use.folds, shuffle=True, random_state=state)
    return list(folds.split(np.zeros(len(labels)), labels if is_class(labels) else None))


def cross_validate(
    name: str, train: Array, train_labels: Labels, test: Array, test_labels: Labels, folds: Folds
) -> Array:
    """Model's score on each fold: accuracy for classes, R² for numbers.

    Features are standardised. R² of a constant is 1 if predicted exactly, otherwise 0.

    Parameters
    ----------
    train, test : ndarrays of shape (n, d)
        The same records, for training and for tests.
    """
    from sklearn import config_context, metrics

    scores, classes = [], is_class(train_labels)
    # checks are a third of the time of a small tree
    checks = {"check_input": False} if name == "decision-tree" else {}
    kind = np.float32 if checks else float
    with config_context(skip_parameter_validation=True, assume_finite=True):
        for learn, held in folds:
            # half the time of scikit-learn's pipeline
            x, truth = train[learn], test_labels[held]
            mean, scale = x.mean(axis=0), x.std(axis=0)
            scale[scale <= len(x) * np.finfo(float).eps * np.abs(mean)] = 1.0
            z, asked = (((rows - mean) / scale).astype(kind) for rows in (x, test[held]))
            fitted = model(name, classes).fit(z, train_labels[learn], **checks)
            guess = fitted.predict(asked, **checks)
            score = np.mean(guess == truth) if classes else metrics.r2_score(truth, guess)
            scores.append(score)
    return np.array(scores, dtype=float)


def utility_records(
    context: CellContext, scenario: Scenario, table: Table, copies: Arrays
) -> list[Measurement]:
    """Utility of every copy of a release.

    Parameters
    ----------
    scenario : Scenario
        With a ``utility`` section.
    table : Table
        The original.
    copies : sequence of M ndarrays of shape (n, N)
        For copies with other columns, a record states the reason.
    """
    use = scenario.utility
    assert use is not None
    if any(copy.shape != table.values.shape for copy in copies):
        why = "needs copies with the original's columns"
        return Cells.all(context, [context.everybody]).withheld("utility_mean_error", why)
    records = [
        context.record(f"utility_{name}", (number,), value)
        for number, copy in enumerate(copies, start=1)
        for name, value in statistics_kept(table.values, copy).items()
    ]
    if use.target is None:
        return records
    labels = target_of(scenario, table)
    # numbers, as models sort labels several times a fold
    if is_class(labels):
        labels = np.unique(labels, return_inverse=True)[1]
    folds = folds_of(labels, use, scenario.seed, context.replicate)
    own = np.array([attribute == target_name(scenario) for attribute in table.attributes])

    def scores_of(name: str, copy: Array) -> Array:
        # a target among the attributes is perturbed too
        released = copy[:, own][:, 0] if own.any() else labels
        tested, truth = (table.values, labels) if use.test == "original" else (copy, released)
        return cross_validate(name, copy[:, ~own], released, tested[:, ~own], truth, folds)

    for name in use.models:
        best, suffix = scores_of(name, table.values), name.replace("-", "_")
        for number, copy in enumerate(copies, start=1):
            scores = scores_of(name, copy)
            for metric, each in (("utility", scores), ("utility_loss", best - scores)):
                # folds share training records, so this is slightly too small
                error = float(each.std(ddof=1) / math.sqrt(len(each)))
                found = float(each.mean()), error
                records.append(context.estimate(f"{metric}_{suffix}", (number,), *found))
    return records


def statistics_kept(original: Array, copy: Array) -> dict[str, float]:
    """Distances of a copy's means, covariances and correlations from the original's.

    No correlations for one attribute, or for a constant column of the copy.
    """
    scale = original.std(axis=0)
    shift = (copy.mean(axis=0) - original.mean(axis=0)) / scale
    K_X, K_Y = (
        np.atleast_2d(np.cov(values / scale, rowvar=False, bias=True))
        for values in (original, copy)
    )
    kept = {
        "mean_error": float(np.sqrt(np.mean(shift**2))),
        "covariance_error": float(np.linalg.norm(K_Y - K_X) / np.linalg.norm(K_X)),
    }
    if len(scale) > 1 and np.diag(K_Y).min() > 0:
        off = (correlation(K_Y) - correlation(K_X))[~np.eye(len(scale), dtype=bool)]
        kept["correlation_error"] = float(np.sqrt(np.mean(off**2)))
    return kept


MOST_ROWS = 600
CLUSTERS = 4


def geometry_records(
    context: CellContext, blocks: Callable[[], Iterable[Block]], seed: int
) -> list[Measurement]:
    """Figures of every copy, from at most ``MOST_ROWS`` random rows."""
    rng, found = stream(seed, "geometry"), []
    for _, x, copies in blocks():
        key = rng.random(len(x))
        least = np.argsort(key)[:MOST_ROWS]
        found.append([key[least], x[least], *(copy[least] for copy in copies)])
    key, x, *copies = (np.concatenate(parts) for parts in zip(*found, strict=True))
    order = np.argsort(key)[:MOST_ROWS]
    return [
        context.record(metric, (number,), value)
        for number, y in enumerate(copies, start=1)
        for metric, value in kept(x[order], y[order]).items()
    ]


def kept(x: Array, y: Array) -> dict[str, float]:
    """Each metric for records ``x``, shape (m, N), and their copy ``y``, shape (m, any).

    Examples
    --------
    >>> x = np.arange(12.0).reshape(6, 2) ** 2
    >>> {name: round(value, 6) for name, value in kept(x, -x).items()}
    {'geometry_distances': 0.0, 'geometry_neighbours': 1.0, 'geometry_clusters': 1.0}
    """
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.metrics import adjusted_rand_score

    before, after = scipy.spatial.distance.pdist(x), scipy.spatial.distance.pdist(y)
    apart = before > 0
    ratio = after[apart] / before[apart]
    spread = float(ratio.std() / ratio.mean()) if ratio.size and ratio.mean() > 0 else 0.0
    clusters = min(CLUSTERS, len(np.unique(x, axis=0)))
    with warnings.catch_warnings():
        # a copy may have fewer distinct rows
        warnings.simplefilter("ignore", ConvergenceWarning)
        labels = [KMeans(clusters, n_init=10, random_state=0).fit_predict(rows) for rows in (x, y)]
    return {
        "geometry_distances": spread,
        "geometry_neighbours": float(np.mean(nearest(before, after))),
        "geometry_clusters": float(adjusted_rand_score(*labels)),
    }


def nearest(before: Array, after: Array) -> Flags:
    """Whether each record's nearest neighbour by ``after`` is nearest by ``before``."""
    D, E = scipy.spatial.distance.squareform(before), scipy.spatial.distance.squareform(after)
    np.fill_diagonal(D, np.inf)
    np.fill_diagonal(E, np.inf)
    chosen = np.take_along_axis(D, E.argmin(axis=1)[:, None], axis=1)[:, 0]
    return chosen <= D.min(axis=1) * (1.0 + 1e-9)
