import numpy as np
import pandas as pd
import pytest

from auditor.data.formats.parts import header

NAMES = ["=1+1", "@sum", "+pay", "-tax", " =x", "age"]


@pytest.fixture
def people(here):
    table = pd.DataFrame(np.random.default_rng(1).normal(size=(40, len(NAMES))), columns=NAMES)
    table.to_csv("people.csv", index=False)
    return here


def test_a_copy_has_no_formula_among_its_column_names_and_is_audited_under_the_names_of_the_table(
    people, command
):
    assert (
        command(
            "perturb", "people.csv", "--scheme", "corner-wave", "--levels", "0.5", "--output", "out"
        )[0]
        == 0
    )
    copy = people / "out" / "copy-1.csv"
    assert not any(
        name.lstrip().startswith(("=", "+", "-", "@"))
        for name in copy.read_text().splitlines()[0].split(",")
    )
    assert header(copy) == NAMES
    status, out, err = command(
        "attack", "ndr", str(copy), "--original", "people.csv", "--output", "estimate.csv"
    )
    assert status == 0, out + err
    assert (people / "estimate.csv").read_text().startswith("'=1+1,'@sum,'+pay,'-tax,' =x,age\n")
