"""Noise for release: secrecy of the key, and laws of its samplers."""

import math
import pickle
import secrets

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import auditor
from auditor.numerics.random_streams import PIECE, CipherStream, ReleaseKey, stream
from auditor.registry import get
from auditor.runs.perturb import as_table
from auditor.schemes.base.scheme import Key, table_moments
from benchmarks import generator_attack

FALSE_ALARM = 1e-6
SIGMA, SQRT12 = 1024.0, math.sqrt(12.0)
NOISE = {"noise": {"variance": SIGMA**2}, "distribution": "uniform"}


def drawn(name="test"):
    return ReleaseKey(bytes(range(32))).stream(name)


def staff():
    return np.random.default_rng(3).integers(0, 100, (20_000, 8)).astype(float)


def uniforms_behind(y, x):
    """The draws u with ``y = x + σ·√12·(u − ½)``, rounded as a copy is."""
    found = []
    for value, original in zip(y, x, strict=True):
        near = round(((value - original) / SIGMA / SQRT12 + 0.5) * 2**53)
        fits = [
            k
            for k in range(near - 3, near + 4)
            if original + (k * 2.0**-53 - 0.5) * SQRT12 * SIGMA == value
        ]
        found.append(fits[0] * 2.0**-53 if fits else math.nan)
    return np.array(found)


@pytest.mark.slow
def test_one_known_record_gave_away_a_table_whose_noise_came_from_the_generator_of_audits():
    """Under a seed of 128 secret bits."""
    X = staff()
    scheme, copy = get("scheme", "independent")(**NOISE), np.empty_like(X)
    scheme.sampler(
        (1.0,), table_moments(as_table(X)), Key(secrets.randbits(128), "independent")
    ).block(0, X, [copy])
    (state,) = generator_attack.state_of(uniforms_behind(copy[0], X[0]))
    z = (generator_attack.following(state, X.size - 2) - 0.5) * SQRT12 * SIGMA
    np.testing.assert_array_equal(np.rint(copy.ravel()[2:] - z), X.ravel()[2:])


def test_a_released_copy_does_not_even_show_the_draws():
    """On the grid a value is known to some 20 bits, not 53."""
    X = staff()[:500]
    copy = auditor.perturb(X, "independent", [1.0], **NOISE).copies[0]
    assert np.isnan([uniforms_behind(y, x) for y, x in zip(copy, X, strict=True)]).mean() > 0.5


def test_no_seed_reaches_the_generator_of_audits_when_none_is_given(monkeypatch):
    def refuse(*arguments, **options):
        raise AssertionError("SFC64 was asked for noise meant for release")

    monkeypatch.setattr(np.random, "SFC64", refuse)
    X, labels = staff()[:70], pd.Series(list("abcab") * 20)
    for scheme, levels in (
        ("corner-wave", [0.5, 0.2]), ("independent", [1.0]), ("rotation-noise", [0.5]),
        ("rotation", [0]), ("linearly-dependent", [1, 2]),
    ):  # fmt: skip
        auditor.perturb(X, scheme, levels).extend(levels)
    auditor.perturb(X, "random-projection", [0], dimensions=3)
    auditor.perturb(X, "random-projection", [0], dimensions=3, matrix="dct")
    for parameters in ({}, {"implementation": "multi-pert"}):
        auditor.perturb(labels, "uniform-multilevel", [0.5, 0.0, 1e-5, 0.3], **parameters).extend(
            [0.4]
        )
    auditor.perturb(labels, "uniform", [0.5, 0.3]).extend([0.4])


def test_a_seed_could_be_found_by_trying_and_the_table_s_fingerprint_is_in_the_way():
    X = staff()[:100]

    def first(seed):
        return (stream(seed, "noise", "independent", 1, 1, 1.0, 0).random(2) - 0.5) * SQRT12 * SIGMA

    def guesses(copy):
        return [
            seed
            for seed in range(10_000)
            if np.abs(copy[0, :2] - X[0, :2] - first(seed)).max() < 0.01
        ]

    audit = np.empty_like(X)
    get("scheme", "independent")(**NOISE).sampler(
        (1.0,), table_moments(as_table(X)), Key(7_531, "independent")
    ).block(0, X, [audit])
    assert guesses(audit) == [7_531]
    assert guesses(auditor.perturb(X, "independent", [1.0], seed=7_531, **NOISE).copies[0]) == []


@pytest.mark.parametrize("scheme", ["corner-wave", "independent"])
def test_the_same_seed_gives_another_table_other_noise(scheme):
    X = staff()[:200]
    changed = X.copy()
    changed[17, 3] += 1.0
    noise = {"variance": 100.0}
    first, again, other = (
        auditor.perturb(x, scheme, [0.5], seed=7, noise=noise).copies[0] for x in (X, X, changed)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).all()
    # the difference of two noises, not 0 and one 1
    gaps = (other - first).ravel() / np.sqrt(2 * 0.5 * 100.0)
    assert stats.kstest(gaps, "norm").pvalue > FALSE_ALARM


def test_the_key_is_not_printed_copied_or_pickled():
    key = ReleaseKey(b"k" * 32)
    assert repr(key) == str(key) == "ReleaseKey(secret)"
    assert "kkkk" not in repr(Key(key, "corner-wave"))
    with pytest.raises(TypeError, match="kept in memory only"):
        pickle.dumps(key)
    release = auditor.perturb(staff()[:9], "random-projection", [0], dimensions=3)
    with pytest.raises(TypeError, match="kept in memory only"):
        pickle.dumps(release)
    # noise that is drawn needs no key any more
    assert auditor.perturb(staff()[:9], "corner-wave", [0.5]).matrices is None
    categories = auditor.perturb(pd.Series(list("abc") * 9), "uniform-multilevel", [0.5])
    assert pickle.loads(pickle.dumps(categories)).levels == (0.5,)


def test_the_key_and_the_seed_are_in_no_file(tmp_path, monkeypatch):
    from auditor.runs.copy_files.write import write_copies

    source, secret = tmp_path / "table.csv", bytes(range(100, 132))
    pd.DataFrame(staff()[:40, :2], columns=["a", "b"]).to_csv(source, index=False)
    monkeypatch.setattr(secrets, "token_bytes", lambda count: secret[:count])
    seed = 918_273_645_546_372_819
    for given, folder in ((None, "secret"), (seed, "seeded")):
        write_copies(str(source), "corner-wave", [0.5, 1.0], given, tmp_path / folder)
        for path in (tmp_path / folder).iterdir():
            content = path.read_bytes()
            assert secret not in content
            assert all(
                text.encode() not in content
                for text in (secret.hex(), str(int.from_bytes(secret)), str(seed), repr(secret))
            )


class Fixed(CipherStream):
    """A stream of given words."""

    def __init__(self, words):
        self._words = b"".join(int(word).to_bytes(8, "little") for word in words)
        self._buffer = np.empty(8 * PIECE + 16, dtype=np.uint8)
        self._encryptor = self

    def update_into(self, zeros, buffer):
        taken, self._words = self._words[: len(zeros)], self._words[len(zeros) :]
        buffer[: len(taken)] = taken

    def update(self, zeros):
        taken, self._words = self._words[: len(zeros)], self._words[len(zeros) :]
        return taken


def test_hand_worked_draws():
    words = [0, 2**63, 2**62, 3 * 2**62, 2**64 - 1]
    np.testing.assert_array_equal(Fixed(words).random(5), [0.0, 0.5, 0.25, 0.75, 1.0 - 2.0**-53])
    np.testing.assert_allclose(
        Fixed(words).standard_exponential(5),
        [65 * math.log(2), math.log(2), 2 * math.log(2), math.log(4 / 3), 0.0],
        rtol=1e-12,
        atol=1e-15,
    )
    quartile = stats.norm.ppf(0.75)
    np.testing.assert_allclose(
        Fixed([0, 2**62, 2**63, 3 * 2**62, 2**63 - 1]).standard_normal(5),
        [-stats.norm.ppf(2.0**-65), quartile, stats.norm.ppf(2.0**-65), -quartile, 0.0],
        atol=1e-15,
        rtol=1e-12,
    )
    np.testing.assert_array_equal(Fixed(words).integers(10, size=4), [0, 8, 4, 2])  # last digits
    # 2⁶⁴ mod 10 = 6: the last six words are drawn again
    np.testing.assert_array_equal(Fixed([2**64 - 1, 7]).integers(5, 15, size=1), [12])


def test_no_remainder_is_favoured():
    low = int((drawn().integers(3 * 2**61, size=100_000) < 2**62).sum())
    assert stats.binomtest(low, 100_000, 2 / 3).pvalue > FALSE_ALARM
    biased = (drawn().integers(2**63, size=100_000).astype(np.uint64) * np.uint64(2)) % np.uint64(
        3 * 2**61
    )
    # the test sees it
    assert stats.binomtest(int((biased < 2**62).sum()), 100_000, 2 / 3).pvalue < FALSE_ALARM
