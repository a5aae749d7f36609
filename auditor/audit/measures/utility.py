"""What copies are still good for: models trained on them, and how well they keep means, covariances and correlations.

| metric | meaning |
| --- | --- |
| ``utility_<model>`` | accuracy (a class) or R² (a number) of a model trained on a copy, by k-fold cross-validation |
| ``utility_loss_<model>`` | the same for the original, less that: what the noise cost; same folds |
| ``utility_mean_error`` | root mean square difference of means, in standard deviations |
| ``utility_covariance_error`` | ``‖K_Y − K_X‖ / ‖K_X‖`` (Frobenius), attributes in units of their standard deviation |
| ``utility_correlation_error`` | root mean square difference of the correlations |

Folds are drawn from the seed and the replicate, the same for every scheme and copy, so that copies
are compared in pairs. Everything is a figure of one copy, whatever attack and knowledge (li2012,
Fig. 4, trains and tests on the copy: ``test: copy``).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.audit.base.records import CellContext
from auditor.data.columns.categorical_table import Categories
from auditor.data.load import load_target
from auditor.data.request import is_file
from auditor.data.table import Table
from auditor.errors import AuditorError
from auditor.numerics.random_streams import stream
from auditor.numerics.statistics import quantile
from auditor.registry import get
from auditor.results.records import Measurement
from auditor.scenario.model import Scenario, UtilityUse
from auditor.types import Array

Labels = NDArray[Any]
Folds = Sequence[tuple[NDArray[np.intp], NDArray[np.intp]]]


def model(name: str, classes: bool) -> Any:
    """Return an untrained scikit-learn model, for features of mean 0 and variance 1; imported here, as scikit-learn takes a second.

    Raises
    ------
    AuditorError
        Logistic regression predicts classes only.
    """
    from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
    from sklearn.svm import SVC, SVR
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    makers: dict[str, tuple[Callable[[], Any], Callable[[], Any] | None]] = {
        "decision-tree": (
            lambda: DecisionTreeClassifier(random_state=0),
            lambda: DecisionTreeRegressor(random_state=0),
        ),
        "svm-rbf": (SVC, SVR),
        "logistic": (lambda: LogisticRegression(max_iter=1000), None),
        "ridge": (RidgeClassifier, Ridge),
    }
    make = makers[name][0 if classes else 1]
    if make is None:
        raise AuditorError(f"{name} predicts classes, and the target is a number")
    return make()


LABEL = "label"
"""A target of this name is the class that a source comes with, so that a scenario can go through
several sources."""


def target_name(scenario: Scenario) -> str:
    """Return the name of the column to predict."""
    assert scenario.utility is not None
    assert scenario.utility.target is not None
    target, source = scenario.utility.target, scenario.data.source
    labels = () if target != LABEL or is_file(source) else get("source", source).labels
    return str(labels[0]) if labels else target


def target_of(scenario: Scenario, table: Table) -> Labels:
    """Return the column to predict, shape (n,): one of the table as the table has it, standardised or not, or one beside it."""
    if target_name(scenario) in table.attributes:
        return table.values[:, table.attributes.index(target_name(scenario))]
    base = None if scenario.base is None else str(scenario.base)
    return table.cut_out(
        _target(
            json.dumps(scenario.data.spec(), sort_keys=True),
            target_name(scenario),
            base,
            scenario.seed,
        )
    )


@lru_cache(maxsize=4)
def _target(spec: str, target: str, base: str | None, seed: int) -> Labels:
    data = json.loads(spec)
    options = {key: data.pop(key, None) for key in ("columns", "rows", "missing", "order")}
    source = data.pop("source")
    options["columns"], _ = Categories({}, data.get("categorical", {})).beside_columns(
        options["columns"], data.get("dates", ())
    )
    # of a table, not of a class
    for key in (
        "standardize",
        "disclosure",
        "bin",
        "categorical",
        "dates",
        "hierarchies",
        "key",
        "bounds",
    ):
        data.pop(key, None)
    folder = None if base is None else Path(base)
    return load_target(
        source, target, **options, parameters=data, rng=stream(seed, "data"), base=folder
    )


def utility_problems(
    scenario: Scenario, table: Table
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield why utility cannot be measured on this table, each as a place below ``utility`` and a message."""
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
    for place, name in enumerate(use.models):
        if name == "logistic" and not is_class(labels):
            yield ("models", place), "predicts classes, and the target is a number"
    fewest = (
        int(np.unique(labels, return_counts=True)[1].min()) if is_class(labels) else table.rows // 2
    )
    if fewest < use.folds:
        most = (
            "the records of the smallest class"
            if is_class(labels)
            else "half the records, for R² of one record is nothing"
        )
        yield ("folds",), f"must be at most {most}, {fewest}; got {use.folds}"


def is_class(labels: Labels) -> bool:
    """Whether a target is a class rather than a number."""
    return labels.dtype.kind != "f"


def folds_of(labels: Labels, use: UtilityUse, seed: int, replicate: int) -> Folds:
    """Return (training rows, test rows) of each fold; classes are spread evenly over them."""
    from sklearn.model_selection import KFold, StratifiedKFold  # here, as above

    state = int(stream(seed, "utility", replicate).integers(2**31))
    splitter = (StratifiedKFold if is_class(labels) else KFold)(
        use.folds, shuffle=True, random_state=state
    )
    return list(splitter.split(np.zeros(len(labels)), labels if is_class(labels) else None))


def cross_validate(
    name: str, train: Array, train_labels: Labels, test: Array, test_labels: Labels, folds: Folds
) -> Array:
    """Return a model's score on each fold, shape (folds,): accuracy for classes, R² for numbers; features are standardised first.

    Parameters
    ----------
    train, test : ndarrays of shape (n, d)
        The same records, as the model learns from them and as it is tested on them.
    """
    from sklearn import config_context  # here, as above

    scores = []
    classes = is_class(train_labels)
    with config_context(skip_parameter_validation=True, assume_finite=True):
        for learn, held in folds:
            mean, scale = train[learn].mean(axis=0), train[learn].std(axis=0)
            scale = np.where(scale > 0, scale, 1.0)
            guess = _guesses(
                name,
                classes,
                (train[learn] - mean) / scale,
                train_labels[learn],
                (test[held] - mean) / scale,
            )
            truth = test_labels[held]
            scores.append(np.mean(guess == truth) if classes else r_squared(guess, truth))
    return np.array(scores, dtype=np.float64)


def _guesses(name: str, classes: bool, known: Array, labels: Labels, asked: Array) -> Labels:
    """Return what a model guesses that was trained on some rows; a tree, single precision anyway, would check them as long as it grows."""
    fitted = model(name, classes)
    if name == "decision-tree":
        fitted.fit(known.astype(np.float32), labels, check_input=False)
        return np.asarray(fitted.predict(asked.astype(np.float32), check_input=False))
    return np.asarray(fitted.fit(known, labels).predict(asked))


def r_squared(guess: Array, truth: Array) -> float:
    """Return R², shapes (m,), m ≥ 2; of truths that are all the same 1 if they are guessed and else 0, as scikit-learn has it.

    Examples
    --------
    >>> r_squared(np.array([1.0, 2.0]), np.array([1.0, 3.0])), r_squared(np.array([1.0, 2.0]), np.array([1.0, 1.0]))
    (0.5, 0.0)
    """
    lost, spread = float(np.sum((guess - truth) ** 2)), float(np.sum((truth - truth.mean()) ** 2))
    return 1.0 - lost / spread if spread > 0 else float(lost == 0.0)


def utility_records(
    context: CellContext, scenario: Scenario, table: Table, copies: Sequence[Array]
) -> list[Measurement]:
    """Return the utility of every copy of a release.

    Parameters
    ----------
    context : CellContext
    scenario : Scenario
        With a ``utility`` section.
    table : Table
        The original.
    copies : sequence of M ndarrays of shape (n, N)
        Of copies with other columns than the table's, as projections have, only one record is
        returned, which says so.
    """
    use = scenario.utility
    assert use is not None
    if any(copy.shape != table.values.shape for copy in copies):
        why = "needs copies with the original's columns"
        everybody = tuple(range(1, len(copies) + 1))
        return [
            context.record("utility_mean_error", everybody, status="not-applicable", reason=why)
        ]
    records = []
    for number, copy in enumerate(copies, start=1):
        for name, value in statistics_kept(table.values, copy).items():
            records.append(_record(context, number, f"utility_{name}", value, None))
    if use.target is None:
        return records
    labels = target_of(scenario, table)
    # as numbers: every model sorts them, several times a fold, and text takes longer to sort than a
    # model to learn
    if is_class(labels):
        labels = np.unique(labels, return_inverse=True)[1]
    folds = folds_of(labels, use, scenario.seed, context.replicate)
    target = target_name(scenario)
    for name in use.models:
        suffix = name.replace("-", "_")
        best = _scores(name, use, target, table, table.values, labels, folds)
        for number, copy in enumerate(copies, start=1):
            scores = _scores(name, use, target, table, copy, labels, folds)
            records.append(
                _record(context, number, f"utility_{suffix}", float(scores.mean()), _error(scores))
            )
            records.append(
                _record(
                    context,
                    number,
                    f"utility_loss_{suffix}",
                    float((best - scores).mean()),
                    _error(best - scores),
                )
            )
    return records


def _scores(
    name: str, use: UtilityUse, target: str, table: Table, copy: Array, labels: Labels, folds: Folds
) -> Array:
    """A target that is among the attributes is perturbed too, and a model learns from what was released of it."""
    held = np.array([attribute != target for attribute in table.attributes])
    released = labels if held.all() else copy[:, ~held][:, 0]
    tested, truth = (table.values, labels) if use.test == "original" else (copy, released)
    return cross_validate(name, copy[:, held], released, tested[:, held], truth, folds)


def statistics_kept(original: Array, copy: Array) -> dict[str, float]:
    """Return how far a copy's means, covariances and correlations are from the original's.

    No correlations for one attribute, or where a copy's column is constant, as a generalised one
    can be.
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
        C_X, C_Y = (K / np.sqrt(np.outer(np.diag(K), np.diag(K))) for K in (K_X, K_Y))
        kept["correlation_error"] = float(
            np.sqrt(np.mean((C_Y - C_X)[~np.eye(len(scale), dtype=bool)] ** 2))
        )
    return kept


def _error(scores: Array) -> float:
    """Standard error over folds, as if they were independent: their training sets overlap, so it is a little small."""
    return float(scores.std(ddof=1) / math.sqrt(len(scores)))


def _record(
    context: CellContext, copy: int, metric: str, value: float, error: float | None
) -> Measurement:
    if error is None:
        return context.record(metric, (copy,), value)
    reach = quantile(0.975) * error
    return context.record(
        metric, (copy,), value, error, (value - reach, value + reach), error_bar="sampling"
    )
