"""What holds for every attack made for one copy, whatever it keeps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import auditor
from auditor import registry
from auditor.adversary.given import Records
from auditor.adversary.single_copy import combined_noise, estimated_covariance
from auditor.audit.numeric import views
from auditor.audit.numeric.known_rows import RowSelection
from auditor.audit.numeric.views import Gathered, ReleasedCopies
from auditor.data.microdata import as_table
from auditor.errors import AuditorError, NotApplicable
from auditor.runs.estimate_numbers import in_blocks
from auditor.runs.perturb import table_moments
from auditor.scenario.read_knowledge import parse_knowledge
from tests.audited import as_audited

USES: list[tuple[str, dict[str, Any]]] = [
    ("udr", {}),
    ("spectral-filter", {}),
    ("spectral-filter", {"shrinkage": "optimal"}),
    ("spectral-filter", {"noise_variance": "unknown"}),
    ("svd-filter", {}),
    ("svd-filter", {"shrinkage": "optimal", "noise_variance": "unknown"}),
    ("pca-filter", {}),
    ("pca-filter", {"components": {"variance-share": 0.9}, "shrinkage": "optimal"}),
    ("pca-filter", {"covariance": "copies", "noise_variance": "unknown"}),
    ("bayes-estimate", {}),
    ("bayes-estimate", {"covariance": "copies"}),
]
EVERY = pytest.mark.parametrize(("name", "parameters"), USES, ids=lambda item: str(item))


def table(n: int = 120, N: int = 5, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, 2)) @ rng.standard_normal((2, N)) * 5 + rng.standard_normal(
        (n, N)
    )


def view_of(release: Any, data: Any, knows: Any) -> Any:
    blocks = in_blocks(data, list(release.copies))
    copies = ReleasedCopies(data, table_moments(data), release.levels, release.law, blocks)
    return Gathered(copies, RowSelection(data, [knows], 0, 1)).view(knows)


@EVERY
def test_data_far_from_zero_are_attacked_as_well(name: str, parameters: dict[str, Any]) -> None:
    X = table() / 5.0  # variance about 1
    here, there = (
        auditor.attack(
            name, as_audited(x, "independent", [0.2], 2, noise={"variance": 1.0}), **parameters
        )
        for x in (X, X + 1e6)
    )
    # At 10⁶ a copy is rounded to 1.2e-10, which is all that may be lost
    np.testing.assert_allclose(there.values - 1e6, here.values, atol=1e-8)


@EVERY
@pytest.mark.parametrize("knowledge", ["perfect", {"estimated": {"rows": 3}}], ids=str)
def test_more_attributes_than_rows_do_not_crash(
    name: str, parameters: dict[str, Any], knowledge: Any
) -> None:
    release = auditor.perturb(table(n=4, N=5), "independent", [1.0], seed=3)
    assert np.isfinite(
        auditor.attack(name, release, knowledge=knowledge, **parameters).values
    ).all()


@EVERY
def test_one_attribute(name: str, parameters: dict[str, Any]) -> None:
    release = auditor.perturb(table(N=1)[:, 0], "independent", [1.0], seed=4)
    values = auditor.attack(name, release, **parameters).values
    assert values.shape == (120,)
    assert np.isfinite(values).all()


@EVERY
def test_rows_in_another_order_are_estimated_the_same(
    name: str, parameters: dict[str, Any]
) -> None:
    from dataclasses import replace

    release = auditor.perturb(table(), "independent", [0.3, 0.9], seed=5)
    order = np.random.default_rng(6).permutation(120)
    shuffled = replace(
        release,
        original=release.original[order],
        copies=tuple(copy[order] for copy in release.copies),
    )
    values = auditor.attack(name, release, **parameters).values
    np.testing.assert_allclose(
        auditor.attack(name, shuffled, **parameters).values, values[order], atol=1e-9
    )


@EVERY
def test_a_rotation_of_the_data_rotates_the_estimate_of_all_but_udr(
    name: str, parameters: dict[str, Any]
) -> None:
    X, T = table(), np.linalg.qr(np.random.default_rng(7).standard_normal((5, 5)))[0]
    release = auditor.perturb(X, "independent", [0.5], noise={"variance": 4.0}, seed=8)
    from dataclasses import replace

    transformed = replace(
        release, original=X @ T, copies=tuple(copy @ T for copy in release.copies)
    )
    values, rotated = (
        auditor.attack(name, release, **parameters).values,
        auditor.attack(name, transformed, **parameters).values,
    )
    assert np.allclose(rotated, values @ T, atol=1e-8) == (name != "udr")


@EVERY
def test_a_closed_form_is_given_exactly_when_nothing_is_learnt_from_the_copies(
    name: str, parameters: dict[str, Any]
) -> None:
    release = auditor.perturb(table(), "independent", [1.0], seed=9)
    estimated = (
        name in ("spectral-filter", "svd-filter") or parameters.get("covariance") == "copies"
    )
    assert (auditor.attack(name, release, **parameters).theory is None) == estimated
    assert (
        auditor.attack(name, release, knowledge={"estimated": {"rows": 60}}, **parameters).theory
        is None
    )


@EVERY
def test_corner_wave_gives_a_coalition_its_best_copy_only(
    name: str, parameters: dict[str, Any]
) -> None:
    release = auditor.perturb(
        table(), "corner-wave", [0.8, 0.3, 0.5], noise={"variance": 4.0}, seed=10
    )
    pooled, best = (
        auditor.attack(name, release, **parameters),
        auditor.attack(name, release, coalition=[2], **parameters),
    )
    np.testing.assert_allclose(pooled.values, best.values, atol=1e-8)


@pytest.mark.parametrize("name", ["udr", "pca-filter", "bayes-estimate"])
def test_knowledge_that_gives_no_moments_is_refused(name: str) -> None:
    release = auditor.perturb(table(), "independent", [1.0], seed=11)
    with pytest.raises(NotApplicable, match="cannot use known-records knowledge"):
        auditor.attack(name, release, knowledge={"known-records": 10})


def test_without_a_law_only_a_filter_that_finds_the_variance_itself_applies() -> None:
    from dataclasses import replace

    X = table()
    release = auditor.perturb(X, "independent", [1.0], noise={"variance": 1.0}, seed=12)
    knows = parse_knowledge("perfect")
    view = replace(view_of(release, as_table(X), knows), law=None)
    for name in ("spectral-filter", "svd-filter"):
        cls = registry.get("attack", name)
        with pytest.raises(NotApplicable, match="law of the noise"):
            cls().affine(view)
        assert not cls(noise_variance="unknown").affine(view).fixed


@pytest.mark.parametrize(
    "scheme", ["independent", "correlated", "corner-wave", "linearly-dependent"]
)
def test_estimated_covariance_is_the_views_own(scheme: str) -> None:
    release = auditor.perturb(table(), scheme, [0.4, 1.0], seed=13)
    data = as_table(release.original)
    view = view_of(release, data, parse_knowledge({"estimated": {"rows": 50}}))
    assert view.held.count == 50
    mean, covariance = view.combined(view.held)
    np.testing.assert_allclose(mean, view.data_moments[0])
    found = estimated_covariance(covariance, combined_noise(view, covariance))
    np.testing.assert_allclose(found, view.data_moments[1], atol=1e-9)


def test_moments_of_a_view_are_those_of_the_copies() -> None:
    release = auditor.perturb(table(), "independent", [1.0], seed=14)
    view = view_of(release, as_table(release.original), parse_knowledge("perfect"))
    np.testing.assert_allclose(view.released.covariance(119), np.cov(release.copies[0].T))


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("llse", {}),
        ("bayes-estimate", {}),
        ("udr", {}),
        ("pca-filter", {}),
        ("pca-filter", {"shrinkage": "optimal"}),
    ],
)
def test_an_adversary_that_knows_all_it_needs_takes_no_moments_of_the_copies(
    name: str, parameters: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    release = auditor.perturb(table(), "independent", [0.4, 1.0, 0.7], seed=21)
    expected = auditor.attack(name, release, coalition=[1, 3], **parameters)

    def never(*_: Any) -> None:
        raise AssertionError("a pass over the copies")

    monkeypatch.setattr(views, "_of_copies_alone", never)
    found = auditor.attack(name, release, coalition=[1, 3], **parameters)
    np.testing.assert_array_equal(found.values, expected.values)
    with pytest.raises(AuditorError, match="AssertionError at test_filter_properties"):
        auditor.attack("spectral-filter", release)


@pytest.mark.parametrize(
    "knowledge", ["perfect", {"estimated": {"rows": 50}}, {"known-records": 30}]
)
def test_moments_gathered_late_are_those_gathered_at_once(knowledge: object) -> None:
    """Over the coalition's copies alone, and over all copies for an engine that audits them."""
    release = auditor.perturb(table(), "independent", [0.4, 1.0, 0.7], seed=22)
    data, knows = as_table(release.original), parse_knowledge(knowledge)
    moments, arrays = table_moments(data), [np.asarray(copy) for copy in release.copies]
    rows = RowSelection(data, [knows], 5, 1)
    every = ReleasedCopies(data, moments, release.levels, release.law, in_blocks(data, arrays))
    at_once = Gathered(every, rows).view(knows).coalition((1, 3))
    some = in_blocks(data, [arrays[0], arrays[2]])
    held = ReleasedCopies(data, moments, (0.4, 0.7), release.law.of((1, 3)), some, numbers=(1, 3))
    late = Gathered(held, rows, late=True).view(knows)
    assert (late.copies, late.levels) == (at_once.copies, at_once.levels)
    assert type(late.given) is type(at_once.given)
    pairs = [(late.released, at_once.released), (late.held, at_once.held)]
    if isinstance(late.given, Records):
        pairs.append((late.given.moments, at_once.given.moments))
    for mine, other in pairs:
        assert mine.count == other.count
        np.testing.assert_allclose(mine.total, other.total, rtol=1e-12, atol=1e-10)
        np.testing.assert_allclose(mine.products, other.products, rtol=1e-12)
