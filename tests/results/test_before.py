"""`benchmarks.before` measures both sides in turn, and tells medians, spreads and ratios of pairs."""

from __future__ import annotations

from pathlib import Path

from benchmarks.before import command, rows_of, script


def test_a_line_has_medians_their_spread_and_the_median_of_the_ratios_of_pairs():
    taken = {"old": iter([9.0, 1.0, 2.0, 4.0]), "new": iter([9.0, 1.0, 1.0, 8.0])}  # the first round warms up
    measured = []

    def case(code: Path, out: Path) -> dict[str, float]:
        measured.append(code.name)
        return {"s": next(taken[code.name])} | ({"MB": 3.0} if code.name == "new" else {})

    lines = list(rows_of("it", case, {"before": Path("old"), "after": Path("new")}, 3))
    assert lines == ["| it | s | 2 (1–4) | 1 (1–8) | 1.00 |", "| it | MB |  | 3 (3–3) |  |"]
    assert measured == ["old", "new"] * 4


def test_a_command_and_a_script_are_measured_as_programs(tmp_path):
    root = Path(__file__).parents[2]
    found = command("--help")(root, tmp_path)
    assert 0.0 < found["processor s"] < 60.0
    assert found["wall s"] > 0.0
    assert script("import auditor; print(f'MB={1.5}'); print('OUT' and 's=2')")(root, tmp_path) == {"MB": 1.5, "s": 2.0}
