"""Contracts of all plugins, of feature families and of sources."""

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import yaml
from pydantic import ValidationError

from auditor.audit.insider.feature import Known, Shown
from auditor.base import pd
from auditor.base.types import Options
from auditor.data.source import NORMAL, RecordLaw, Source
from auditor.numerics.statistics import standardised
from auditor.registry import KINDS, Plugin, get as get, names as names
from auditor.scenario.yaml_document import load

SEED = 20_090_101
"""Seed of all draws, so that failures repeat."""
READS_ONLY = "leaves what it is shown as it is"
LEVEL = 1e-6
"""Probability per test that an honest scheme fails."""


class ContractError(AssertionError):
    """A plugin breaks its contract.

    Attributes
    ----------
    check
        Name of the failed check.
    """

    def __init__(self, cls: type[Plugin], check: str, said: str) -> None:
        self.check = check
        kind, name = getattr(cls, "kind", "plugin"), getattr(cls, "name", cls.__name__)
        super().__init__(f"{kind} {name!r} fails the check {check!r}: {said}")


class Contract:
    """Checks of one plugin class.

    Parameters
    ----------
    cls
        The class, registered or not.
    parameters
        In scenario spelling; default ``cls.trial``.
    """

    def __init__(self, cls: type[Any], parameters: Options | None = None) -> None:
        self.cls = cls
        self.stated = parameters
        self.parameters = dict(cls.trial if parameters is None else parameters)

    def require(self, check: str, holds: object, expected: str, found: object = "others") -> None:
        """Check a condition.

        Raises
        ------
        ContractError
            It does not hold.
        """
        if not holds:
            said = f"expected {expected}, found {found}{self.where()}"
            raise ContractError(self.cls, check, said)

    def where(self) -> str:
        """Tried case, for messages."""
        return ""

    @contextmanager
    def no_other_error(self, check: str) -> Iterator[None]:
        """Report any exception as a broken contract."""
        try:
            yield
        except ContractError:
            raise
        except (Exception, SystemExit) as error:
            # numpy's message on a read-only array
            wrote = isinstance(error, ValueError) and "read-only" in str(error)
            found = f"{type(error).__name__}: {error}"
            self.require(READS_ONLY if wrote else check, False, "no error", found)

    def make(self) -> Any:
        """A new plugin.

        Raises
        ------
        ContractError
            The parameters are refused.
        """
        try:
            return self.cls(self.cls.Parameters.model_validate(self.parameters))
        except ValidationError as error:
            said = f"expected parameters to try it with, in its `trial` or from the caller, found that {error}"
            raise ContractError(self.cls, "can be made", said) from error

    def check_description(self) -> None:
        """Check a plugin's description and parameters."""
        cls = self.cls
        name = getattr(cls, "name", None)
        self.require(
            "named",
            getattr(cls, "kind", None) in KINDS and isinstance(name, str) and name,
            f"a `name` and one of the kinds {', '.join(KINDS)}",
            f"name {name!r}",
        )
        summary, fields = cls.summary(), cls.Parameters.model_fields
        self.require(
            "documented",
            len(summary) > 20 and summary.endswith("."),
            "a docstring whose first line is a sentence, as `auditor list` shows it",
            repr(summary),
        )
        stated, a_text = "parameters described", "a docstring of `Parameters`"
        self.require(stated, cls.Parameters.__doc__, a_text, "none")
        for name, info in fields.items():
            self.require(stated, info.description, f"a description of {name!r}", "none")
        self.require(
            "unknown parameters refused",
            not self._is_accepted({**self.parameters, "no-such-thing": 1}),
            "an error for the parameter 'no-such-thing'",
            "that it is taken",
        )
        required = any(info.is_required() for info in fields.values())
        if self.stated is not None or cls.trial or not required:
            given = self.make().parameters
            written = given.model_dump(mode="json", by_alias=True)
            again = load(yaml.safe_dump(written)).value
            self.require(
                "parameters are data",
                self._is_accepted(again) and cls.Parameters.model_validate(again) == given,
                f"{written} to be the same parameters again from YAML",
            )

    def _is_accepted(self, values: Any) -> bool:
        try:
            self.cls.Parameters.model_validate(values)
        except ValidationError:
            return False
        return True


def check_plugin(cls: type[Plugin], parameters: Options | None = None) -> None:
    """Check a plugin's description and that its parameters are data.

    Parameters
    ----------
    cls
        The class, registered or not.
    parameters
        In scenario spelling; default ``cls.trial``.

    Raises
    ------
    ContractError
        Name, kind or docstring is missing, a parameter has no description, an unknown parameter is
        accepted, or parameters change in a round trip through YAML.
    """
    Contract(cls, parameters).check_description()


def digest(arrays: Iterable[Any]) -> str:
    """SHA-256 over arrays, to detect writes."""
    found = hashlib.sha256()
    for array in arrays:
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


def check_feature(cls: type[Any]) -> None:
    """Check a feature family on 300 records of two copies, with blanks.

    Parameters
    ----------
    cls
        The class, registered or not.

    Raises
    ------
    ContractError
        A column is not one finite value a record, differs between calls, or changes with an
        original that the family may not read.
    """
    contract = Contract(cls)
    contract.check_description()
    rng = np.random.default_rng(0)
    x = np.exp(rng.standard_normal((300, 2))).round(2)
    cells = np.exp(rng.standard_normal((300, 2, 2))).round(2)
    cells[:, 0] = np.roll(x, 1, axis=0)
    cells[:30, 1, 0] = np.nan
    every = Known(0, x, float(x.min()), x[:, 0] - x[:, 0].mean())
    known, shown, family = every.only(np.arange(0, 300, 2)), Shown(cells), contract.make()
    columns = dict(family.columns(shown, known))
    again = dict(contract.make().columns(shown, known))
    twice = "the same columns in two calls"
    contract.require("deterministic", list(columns) == list(again), twice)
    for name, column in columns.items():
        values = np.asarray(column(shown))
        contract.require(
            "one value a record", values.shape == (300,), f"shape (300,) of {name!r}", values.shape
        )
        contract.require("finite", np.isfinite(values).all(), f"finite values in column {name!r}")
        same = (values == again[name](shown)).all()
        contract.require("deterministic", same, f"{twice}, of {name!r} too")
    if not cls.learns:
        blind = dict(family.columns(shown, known.only(np.arange(0))))
        learns = "`learns = True` of a family whose columns depend on originals"
        contract.require("reads what it states", list(blind) == list(columns), learns)


# -- Contract of sources: a deterministic table of named columns -----------------------------------


ROWS = 60
LAW_ROWS = 4000
FURTHEST = 2.7
"""Bound on ``√n`` times an empirical distribution's distance; exceeded with probability ``2
e^{−2·2.7²}`` ≈ 1e-6."""
MOST_DEVIATIONS = 5.0
"""Bound on a null correlation, in units of 1/√n."""


def check_source(cls: type[Source], parameters: Options | None = None) -> None:
    """Check that a source keeps its contract.

    Parameters
    ----------
    cls
        The source's class, registered or not.
    parameters
        In scenario spelling; default ``cls.trial``.

    Raises
    ------
    ContractError
        With the name of the check: one of ``check_plugin``, or ``describes its data``, ``a table``,
        ``unique names``, ``as many rows as asked``, ``same seed, same table``, ``finite``, ``labels
        and domains``, ``an outline``, ``a law``, ``follows its law``.

    Notes
    -----
    Values may be missing; the scenario decides their treatment.
    """
    _SourceContract(cls, parameters).check()


class _SourceContract(Contract):
    def check(self) -> None:
        self.check_description()
        require = self.require
        require("describes its data", self.cls.description, "a `description` of the data", "none")
        frame = self._frame(ROWS)
        a_frame = "`frame` to return a DataFrame"
        require("a table", isinstance(frame, pd.DataFrame), a_frame, type(frame).__name__)
        enough = frame.shape[0] >= 2 and frame.shape[1] >= 1
        require("a table", enough, "two records or more", f"shape {frame.shape}")
        names = [str(name) for name in frame.columns]
        unique = len(set(names)) == len(names) and all(names)
        require("unique names", unique, "names, each once", names)
        width = self.make().width()
        fits = (len(frame) == ROWS and frame.shape[1] == width) if width else len(frame) <= ROWS
        shape = f"{ROWS} records of {width} columns" if width else f"at most {ROWS} records"
        require("as many rows as asked", fits, shape, f"shape {frame.shape}")
        numbers = frame.select_dtypes("number").to_numpy(dtype=float, na_value=np.nan)
        require("finite", not np.isinf(numbers).any(), "finite numbers", "infinite ones")
        same = frame.equals(self._frame(ROWS))
        require("same seed, same table", same, "the same table from the same seed", "another")
        domains = self.make().domains()
        unknown = {*self.cls.labels, *domains} - set(names)
        own = "`labels` and `domains` of its own columns"
        require("labels and domains", not unknown, own, sorted(unknown))
        for name, domain in domains.items():
            inside = frame[name].dropna().isin(domain).all()
            require("labels and domains", inside, f"every value of {name!r} in its domain")
        self._check_outline(frame)
        self._check_law()

    def _frame(self, rows: int) -> Any:
        with self.no_other_error("a table"):
            return self.make().frame(rows, np.random.default_rng(SEED))

    def _check_outline(self, frame: pd.DataFrame) -> None:
        with self.no_other_error("an outline"):
            known = self.make().outline(ROWS)
            if known is None:
                return
            x = frame.to_numpy(dtype=float)
            covariance = np.cov(x.T, ddof=0).reshape(x.shape[1], -1)
            right = (known.columns, known.rows) == (tuple(frame.columns), len(frame)) and all(
                np.allclose(stated, found, rtol=1e-9, atol=1e-9 * float(np.abs(found).max()))
                for stated, found in ((known.mean, x.mean(axis=0)), (known.covariance, covariance))
            )
        expected = "columns, number of records, mean and covariance (divisor n) of its table"
        self.require("an outline", right, expected)

    def _check_law(self) -> None:
        with self.no_other_error("a law"):
            law = self.make().law()
        if law is None:
            return
        is_law, a_law = isinstance(law, RecordLaw), "`law` to return a RecordLaw or None"
        self.require("a law", is_law, a_law, type(law).__name__)
        frame = self._frame(LAW_ROWS)
        names, n = [str(name) for name in frame.columns], len(frame)
        lacking = [] if law.normal else [name for name in names if name not in law.shapes]
        a_shape = "a shape of every attribute, or of none if jointly normal"
        self.require("a law", not lacking, a_shape, f"none of {lacking}")
        values = standardised(frame.to_numpy(dtype=float))
        columns = {
            name: (law.shapes.get(name, NORMAL), x) for name, x in zip(names, values.T, strict=True)
        }
        if law.normal:  # then sums are normal too
            columns["their sum"] = NORMAL, standardised(values.sum(axis=1)[:, None])[:, 0]
        else:
            apart = np.abs(values.T @ values / np.sqrt(n) - np.sqrt(n) * np.eye(len(names))).max()
            self._require_independent("attributes", float(apart))
        for name, (shape, column) in columns.items():
            x, share = np.sort(column), np.arange(n + 1) / n
            # for the sample mean and deviation in a steep law
            reach = MOST_DEVIATIONS * (1.0 + np.abs(x)) / np.sqrt(n)
            above, below = share[1:] - shape.cdf(x + reach), shape.cdf(x - reach) - share[:-1]
            off = float(np.sqrt(n) * np.maximum(above, below).max())
            found = f"it {off:.1f}/√n off at n = {n:,}"
            self.require("follows its law", off < FURTHEST, f"{name!r} to have its shape", found)
        x = np.column_stack([column for _, column in columns.values()])
        after = np.abs((x[1:] * x[:-1]).sum(axis=0)).max() / np.sqrt(n)
        self._require_independent("records", float(after))

    def _require_independent(self, what: str, found: float) -> None:
        said = f"a correlation of {found:.1f}/√n"
        self.require("follows its law", found < MOST_DEVIATIONS, f"independent {what}", said)
