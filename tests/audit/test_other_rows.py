"""Leaks between rows of copies of categories."""

import numpy as np
import pandas as pd
import pytest

from auditor.audit.categorical.other_rows import elsewhere
from tests.audited import audited_files, cells

RNG = np.random.default_rng
QUIETLY = pytest.mark.filterwarnings("ignore::auditor.base.AuditorWarning")
SHARES = (0.5, 0.3, 0.15, 0.05)


def values(seed, rows=3_000):
    return RNG(seed).choice(4, rows, p=SHARES)


def audit(folder, x, copies, attacks=("posterior",), **fields):
    table, *frames = (
        pd.DataFrame({"group": np.array(list("abcd"))[each]}) for each in (x, *copies)
    )
    how = {"aligned": True} | fields
    who = {"attacks": list(attacks), "coalitions": "subsets"}
    return audited_files(folder, table, frames, {"categorical": ["group"]}, how, **who)


def told(result, coalition=(1,), attack="fitted-to-originals", metric="normalized_error"):
    found = cells(result, attack=attack, metric=metric, attribute="*", coalition=coalition)
    return found[0] if found else None


def test_nothing_is_elsewhere_in_honest_copies():
    x = values(1)
    copies = [
        np.where(RNG(seed).random(x.size) < 0.5, x, RNG(seed + 50).permutation(x))
        for seed in range(5)
    ]
    copies += [RNG(seed).permutation(x) for seed in range(5)] + [np.zeros(x.size, dtype=int), x]
    assert [elsewhere([x, values(2)], [copy, values(3)]) for copy in copies] == [[]] * 12
    rare = np.arange(x.size) // (x.size - 3)
    assert elsewhere([rare], [RNG(2).permutation(rare)]) == []
    assert elsewhere([x[:1]], [x[:1]]) == elsewhere([x[:2]], [x[1::-1]]) == []


@QUIETLY
def test_values_of_the_row_before_are_no_safe_copy(tmp_path):
    x = values(6)
    copy = np.where(RNG(7).random(x.size) < 0.75, np.roll(x, 1), x)
    result = audit(tmp_path, x, [copy], attacks=("posterior", "serial-posterior"))
    assert told(result).value < told(result, attack="posterior").value - 0.2
    assert result.expectations[0].status == "fails"


@QUIETLY
@pytest.mark.parametrize("move", ["by one", "from the end"])
def test_moved_rows_are_rebuilt(move, tmp_path):
    x = values(8)
    result = audit(
        tmp_path, x, [np.roll(x, 1) if move == "by one" else x[::-1], RNG(9).permutation(x)]
    )
    assert max(told(result).value, told(result, coalition=(1, 2)).value) < 0.01
    assert told(result, coalition=(2,)).value > 0.95
    assert result.expectations[0].status == "fails"


@QUIETLY
def test_shuffled_rows_and_stated_laws_stay_safe(tmp_path):
    x = values(10)
    shuffled = audit(tmp_path, x, [RNG(11).permutation(x)])
    assert told(shuffled).value > 0.95
    assert shuffled.expectations[0].status == "holds"
    kept = np.where(RNG(12).random(x.size) < 0.3, x, RNG(13).integers(0, 4, x.size))
    assert told(audit(tmp_path, x, [kept], levels=[0.3], law={"scheme": "uniform"})).value > 0.85


def sharing(x, rows):
    which = np.arange(len(x)) // rows * rows
    kept = RNG(31).random(len(x)) < 0.69
    return np.where(kept[which], x, RNG(32).integers(0, 4, len(x))[which])


@QUIETLY
@pytest.mark.parametrize("rows", [2, 5])
def test_noise_that_several_rows_share_is_no_safe_copy(rows, tmp_path):
    x = RNG(30).choice(4, 20_000)
    result = audit(tmp_path, x, [sharing(x, rows)])
    assert told(result).value < 0.49 < 0.51 < told(result, attack="posterior").value
    assert result.expectations[0].status == "fails"
