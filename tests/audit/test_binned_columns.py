"""Information of noisy numbers about their bins."""

import auditor


def told(level):
    result = auditor.run({
        "seed": 1, "data": {"source": "cps", "columns": ["salary"], "rows": 400, "bin": {"salary": {"quantile": 10}}}, "attacks": ["posterior"],
        "schemes": [{"name": "corner-wave", "levels": [level]}],
    })  # fmt: skip
    return {
        record.metric: record.value
        for record in result.measurements
        if record.attack == "posterior" and record.attribute == "*"
    }


def test_noise_that_swamps_the_column_tells_nothing_and_takes_no_more_memory():
    """A grid as fine as the column would have 10⁸ cells of 10 bins."""
    swamped = told(1e9)
    assert abs(swamped["normalized_error"] - 1.0) < 0.02
    assert swamped["mutual_information"] < 0.02
    assert told(0.01)["mutual_information"] > 1.0
