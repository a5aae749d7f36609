import re
from textwrap import dedent

import jsonschema
import numpy as np
import pytest

import auditor
from auditor.base import AuditorError, ScenarioError
from auditor.process.environment import shipped_scenarios
from auditor.registry.parameters import Problems
from auditor.runs.check import check_data
from auditor.scenario.json_schema import scenario_schema
from auditor.scenario.read import assemble, find_scenario, read_scenario
from auditor.scenario.read_plugins import parse_knowledge
from auditor.scenario.yaml_document import scalar

BASE = {
    "data": {"source": "gaussian", "covariance": [[1.0, 0.5], [0.5, 2.0]], "rows": 60},
    "schemes": [{"name": "corner-wave", "levels": [0.25, 1.0, 0.5]}],
    "attacks": ["llse"],
}


def scenario(**fields):
    return read_scenario({**BASE, **fields})


def problems(document, tmp_path=None, name="x.yaml"):
    source = document
    if tmp_path is not None:
        source = tmp_path / name
        source.write_text(dedent(document), encoding="utf-8")
    with pytest.raises(ScenarioError) as caught:
        read_scenario(source)
    return str(caught.value).replace(f"{source}:", "").splitlines()


def rows(table):
    return [line.split(" ~ ") for line in table.strip().splitlines()]


def test_every_problem_of_a_file_is_told_at_once_and_where_it_stands(tmp_path):
    text = """\
        schema: 2
        titel: x
        seed: -1
        data:
          source: cps
          colums: [age]
          rows: 1
        schemes:
          - {name: corner-wav, levels: [1]}
          - {name: corner-wave, levels: [1, -2], algoritm: x}
          - {name: correlated, levels: {uniform: [1, 0.2], count: 3}}
          - corner-wave
          - name: independent
            id: mine
            levels:
              - 0.5
              - high
        knowledge: [perfct, {estimated: {rows: 1, structure: some}}, {estimated: {rws: 9}}]
        coalitions: [single, {copies: [1, 1]}, {random: 0}]
        attacks: [llse, llse, lsse]
        measures: {within: -1}
        sweep: {data.rowz: [1], data.rows: 5, attaks: [1]}
        replicates: 1.5
        expect:
          - no-colusion-gain
          - normalized_error: {scheme: x, at-least: 1}
          - normalized_error: {attack: llse, at-lest: 3}
          - ranking: {order: [a]}
        cite: [li2102]
    """
    places = [re.match(r"(\d+:\d+): (\S+)", line).groups() for line in problems(text, tmp_path)]
    assert places == [
        ("1:9", "schema"), ("2:1", "titel"), ("3:7", "seed"), ("6:3", "data.colums"),
        ("7:9", "data.rows"), ("9:12", "schemes[0].name"), ("10:37", "schemes[1].levels[1]"),
        ("10:42", "schemes[1].algoritm"), ("11:42", "schemes[2].levels.uniform"),
        ("12:5", "schemes[3]"), ("12:5", "schemes[3].levels"), ("17:9", "schemes[4].levels[1]"),
        ("18:13", "knowledge[0]"), ("18:40", "knowledge[1].estimated.rows"),
        ("18:54", "knowledge[1].estimated.structure"), ("18:75", "knowledge[2].estimated.rws"),
        ("19:14", "coalitions[0]"), ("19:31", "coalitions[1].copies"),
        ("19:49", "coalitions[2].random"), ("20:17", "attacks[1]"), ("20:23", "attacks[2]"),
        ("21:20", "measures[0].within"), ("22:21", 'sweep["data.rowz"][0]'),
        ("22:36", 'sweep["data.rows"]'), ("22:39", "sweep.attaks"), ("23:13", "replicates"),
        ("25:5", "expect[0]"), ("26:32", "expect[1].normalized_error.scheme"),
        ("27:38", "expect[2].normalized_error.at-lest"), ("28:22", "expect[3].ranking.order"),
        ("29:8", "cite[0]"),
    ]  # fmt: skip


def test_a_misspelling_is_told_with_the_nearest_valid_spelling(tmp_path):
    for line, hint in [
        ("titel: x", "title"), ("data: {source: cpss}", "cps"),
        ("data: {source: cps, colums: [age]}", "columns"),
        ("schemes: [{name: corner-wav, levels: [1]}]", "corner-wave"), ("attacks: [lsse]", "llse"),
        ("schemes: [{name: corner-wave, levels: [1], algorithm: brigde}]", "bridge"),
        ("knowledge: [perfekt]", "perfect"), ("coalitions: [subset]", "subsets"),
        ("expect: [no-collusion-gian]", "no-collusion-gain"),
        ("expect: [{normalised_error: {at-least: 0}}]", "normalized_error"),
        ("cite: [li2021]", "li2012' or 'li2011"),
        ("expect: [{matches-theory: {attack: llsee}}]", "llse"),
    ]:  # fmt: skip
        fields = ["data: cps", "schemes: [{name: corner-wave, levels: [1]}]", "attacks: [llse]"]
        field = line.partition(":")[0]
        text = "\n".join([*(one for one in fields if one.partition(":")[0] != field), line])
        assert any(f"did you mean '{hint}'" in problem for problem in problems(text, tmp_path))


def test_what_comes_from_outside_has_no_place_in_the_file(tmp_path):
    for change, expected in [
        (("data.rows", 1), "data.rows must be"),
        (("schemes[corner-wave].levels", [-1, 2]), "schemes[0].levels[0] cannot be used"),
        (("schemes[*].levels", "x"), "schemes[0].levels must be a list"),
    ]:
        path = tmp_path / "x.yaml"
        path.write_text("data: cps\nschemes: [{name: corner-wave, levels: [1]}]\nattacks: [llse]\n")
        with pytest.raises(ScenarioError, match=f"^{re.escape(expected)}"):
            read_scenario(path, [change])


def test_overrides_change_any_place():
    changed = read_scenario(
        BASE,
        [("schemes[corner-wave].levels", [1, 2]), ("data.rows", 9), ("knowledge", "perfect")],
        seed=5,
    )
    assert changed.schemes[0].levels.values == (1.0, 2.0)
    assert (changed.data.rows, changed.seed) == (9, 5)
    again = read_scenario(changed, [("schemes[0].levels", [3])])
    assert again.schemes[0].levels.values == (3.0,)
    with pytest.raises(AuditorError, match="numbered from 0"):
        read_scenario(BASE, [("schemes[4].levels", [1])])
    with pytest.raises(AuditorError, match="is not a path"):
        read_scenario(BASE, [("a..b", 1)])


def test_an_optional_section_may_hold_nothing_but_comments():
    for field in ["cite", "expect", "measures", "sweep"]:
        for empty in [None, []]:
            if (field, empty) != ("sweep", []):
                assert scenario(**{field: empty}).spec() == scenario().spec()


NAMED = """
{knowledge: [{name: perfect}]} ~ {knowledge: [perfect]}
{knowledge: [{name: estimated, rows: 9}]} ~ {knowledge: [{estimated: {rows: 9}}]}
{knowledge: [{name: known-records, count: 3}]} ~ {knowledge: [{known-records: 3}]}
{coalitions: [{name: singles}]} ~ {coalitions: [singles]}
{coalitions: [{name: copies, copies: [1, 3]}]} ~ {coalitions: [{copies: [1, 3]}]}
{measures: [{name: within, tolerance: 0.2}]} ~ {measures: [{within: 0.2}]}
{expect: [{name: theorem-4, margin: 0.02}]} ~ {expect: [{theorem-4: {margin: 0.02}}]}
{attacks: [{name: llse}]} ~ {attacks: [llse]}
"""


def test_every_list_takes_a_mapping_with_a_name():
    for fields, spelt in rows(NAMED):
        assert scenario(**scalar(fields)).spec() == scenario(**scalar(spelt)).spec()


def levels_of(levels, seed=0):
    read = scenario(schemes=[{"name": "corner-wave", "levels": levels}])
    return read.schemes[0].levels.resolve(seed)


def test_random_levels_depend_on_seed_and_range_alone():
    for kind in ["uniform", "log-uniform"]:
        drawn = levels_of({kind: [0.25, 1.0], "count": 30}, seed=7)
        assert all(0.25 <= level <= 1.0 for level in drawn)
        assert len(set(drawn)) == 30
        assert levels_of({kind: [0.25, 1.0], "count": 10}, seed=7) == drawn[:10]
        assert levels_of({kind: [0.25, 1.0], "count": 30}, seed=8) != drawn


def test_coalitions_in_every_form():
    for entry, expected in [
        ("singles", [(1,), (2,), (3,)]), ("prefixes", [(1,), (1, 2), (1, 2, 3)]),
        ("subsets", [(1,), (2,), (3,), (1, 2), (1, 3), (2, 3), (1, 2, 3)]), ([3, 1], [(1, 3)]),
        ({"first": 2}, [(1, 2)]),
    ]:  # fmt: skip
        result = auditor.run({**BASE, "coalitions": [entry]})
        assert list(dict.fromkeys(record.coalition for record in result.measurements)) == expected


KNOWLEDGE = """
perfect ~ perfect
{estimated: {rows: 400}} ~ estimated(rows=400)
{estimated: {rows: 400, structure: none}} ~ estimated(rows=400, structure=none)
{known-records: 10} ~ known-records(10)
{known-sample: 50} ~ known-sample(50)
{known-attributes: [a, b]} ~ known-attributes(a, b)
{model: {target: a, predictors: b, rows: 40}} ~ model(a on b, rows=40)
{model: {target: a, predictors: [b, c], rows: 40, known: true}} ~ model(a on b, c, rows=40; known: b, c)
{model: {target: a, predictors: [b, c], depth: 3, rows: 40, known: true}} ~ model(a on b, c by a tree to depth 3, rows=40; known: b, c)
{name: model, target: a, rows: 40, tree: {split: b, at: 1, below: {mean: 1, variance: 0, share: 0.5}, above: {split: c, at: -2.5, below: {mean: 1, variance: 0, share: 0.3}, above: {mean: 1, variance: 0, share: 0.2}}}} ~ model(a on b, c by [b ≤ 1: (1, 0, 0.5), else [c ≤ -2.5: (1, 0, 0.3), else (1, 0, 0.2)]], rows=40)
{rules: {margins: [a, [a, b]]}} ~ rules(a, a × b)
{rules: {tree: {target: a, predictors: [b, c], depth: 2}, known: [b]}} ~ rules(tree of a on b, c to depth 2; known: b)
{rules: {margins: [[a, b]], known: a}} ~ rules(a × b; known: a)
{name: rules, if-then: [{if: {a: 1, c: x}, then: {b: y}}, {then: {b: 2}, confidence: 0.5, support: 0.5}]} ~ rules(if a = 1 and c = x then b = y, b = 2 (0.5, 0.5))
"""


def test_knowledge_in_every_form():
    for spelt, label in rows(KNOWLEDGE):
        (state,) = scenario(knowledge=[scalar(spelt)]).knowledge
        assert state.label == label
        assert parse_knowledge(state.spec()) == state


IMPOSSIBLE = """
data: {source: cps, columns: [age, salry]} ~ data.columns[1] ~ no column 'salry'; did you mean 'salary'?
data: {source: cps, columns: [age], categorical: [salry]} ~ data.categorical ~ no column 'salry'; did you mean 'salary'?
data: {source: cps, rows: 999999} ~ data.rows ~ the table has 193,682 records
data: {source: inline, values: {x: [1, null, 2]}} ~ data ~ column 'x' has 1 missing value
data: {source: inline, values: {a: [1, 2], x: [3, 5]}, columns: [x], categorical: [a]}, expect: [{accuracy: {attribute: a, at-least: 0}}] ~ expect[0].accuracy.attribute ~ names the only category
data: {source: inline, values: {a: [1, 2], b: [1, 2], x: [3, 5]}, columns: [x], categorical: [a, b]}, expect: [{accuracy: {attribute: [b, c], at-least: 0}}] ~ expect[0].accuracy.attribute ~ 'c'; valid are a, b, x
knowledge: [{estimated: {rows: 61}}] ~ knowledge[0].estimated.rows ~ needs 61 released rows; the table has 60
knowledge: [{model: {target: x1, predictors: [x3], rows: 5}}] ~ knowledge[0].model.predictors[0] ~ no column that is audited: 'x3'
knowledge: [{known-attributes: [x3]}] ~ knowledge[0].known-attributes ~ names no column that is audited: 'x3'
schemes: [{name: corner-wave, levels: [1], noise: {matrix: [[1]]}}] ~ schemes[0] ~ must be 2 × 2
schemes: [{name: corner-wave, levels: [1e+300]}] ~ schemes[0] ~ beyond what double precision can square
expect: [{distortion: {coalition: [1, 4], at-least: 0}}] ~ expect[0].distortion.coalition ~ names copy 4, but only 3 copies are released
expect: [{no-collusion-gain: {coalition: {first: 9}}}] ~ expect[0].no-collusion-gain.coalition ~ names copy 9, but only 3
"""


def test_what_the_data_cannot_give_is_told_before_the_run():
    for fields, path, shown in rows(IMPOSSIBLE):
        with pytest.raises(ScenarioError) as caught:
            check_data(scenario(**scalar(f"{{{fields}}}")))
        assert [problem.path for problem in caught.value.problems] == [path]
        assert shown in str(caught.value)


@pytest.mark.parametrize(("path", "values", "read"), [
    ("data.rows", [10, 20], lambda s: s.data.rows),
    ("schemes[wave].levels.count", [2, 3], lambda s: s.schemes[0].levels.count),
    ("schemes[*].algorithm", ["bridge", "parallel"], lambda s: s.schemes[0].parameters.algorithm),
    ("schemes[0].noise", ["white", {"variance": 2.0}], lambda s: s.spec()["schemes"][0]["noise"]),
    ("knowledge[1].estimated.rows", [5, 6], lambda s: s.knowledge[1].rows),
    ("attacks[0]", ["llse", "ndr"], lambda s: s.attacks[0].name),
    ("data.covariance", [[[1.0]], [[2.0]]], lambda s: s.data.parameters["covariance"]),
])  # fmt: skip
@pytest.mark.slow_after_first
def test_any_path_can_be_swept(path, values, read):
    swept = scenario(
        schemes=[{"name": "corner-wave", "id": "wave", "levels": {"uniform": [0, 1], "count": 4}}],
        knowledge=["perfect", {"estimated": {"rows": 4}}],
        sweep={path: values},
    )
    assert [here.point for here in swept.points] == [{path: value} for value in values]
    assert [read(here) for here in swept.points] == values
    result = auditor.run(swept)
    assert [record.sweep for record in result.measurements if record.sweep == {path: values[-1]}]
    assert not result.failed


FULL = {
    "schema": 1, "title": "Everything at once <script>", "cite": ["li2012"], "seed": 3,
    "data": {
        "source": "gaussian",
        "spectrum": {"large": 4.0, "count": 1, "small": 0.5, "attributes": 2}, "rows": 64,
        "standardize": True,
    },
    "schemes": [
        {
            "name": "corner-wave", "levels": {"log-uniform": [0.2, 2.0], "count": 3},
            "algorithm": "on-demand", "noise": {"variance": 2.0},
        },
        {"name": "correlated", "id": "other", "levels": [0.5, 0.5, 0.1], "noise": {"spectrum": [1.0, 0.0]}, "already-out": 0.5},
    ],
    "knowledge": ["perfect", {"estimated": {"rows": 20, "structure": "none"}}],
    "coalitions": ["singles", "pairs", {"copies": [1, 3]}, {"random": 2}, {"first": 2}],
    "attacks": ["ndr", {"name": "llse", "id": "best"}],
    "measures": [{"within": 0.3}, "error-distribution"], "sweep": {"data.rows": [32, 64]},
    "replicates": 2,
    "expect": [
        {"no-collusion-gain": {"scheme": "corner-wave"}},
        {
            "collusion_gain": {
                "at_most": 1, "attack": ["best", "ndr"],
                "knowledge": [{"estimated": {"rows": 20, "structure": "none"}}, "perfect"],
            },
        },
        {"ranking": {"order": ["best", "ndr"]}}, "matches-theory",
    ],
}  # fmt: skip


@pytest.mark.slow
def test_a_resolved_scenario_reads_as_itself_and_measures_the_same():
    first = auditor.run(FULL)
    again = auditor.run(first.scenario)
    assert again.scenario == first.scenario
    assert again.measurements == first.measurements
    assert again.distributions == first.distributions
    for one, other in zip(again.expectations, first.expectations, strict=True):
        assert one.model_dump(exclude={"where"}) == other.model_dump(exclude={"where"})


def test_every_default_is_filled_in():
    spec = scenario(expect=["no-collusion-gain", {"rmse": {"at-most": 9}}]).spec()
    assert list(spec) == [
        "schema", "title", "cite", "seed", "data", "schemes", "knowledge", "coalitions", "attacks", "measures", "sweep", "replicates",
        "expect",
    ]  # fmt: skip
    assert spec["knowledge"] == ["perfect"]
    assert spec["coalitions"] == ["singles", "all"]
    assert (spec["seed"], spec["replicates"]) == (0, 1)
    assert spec["schemes"][0] == {
        "name": "corner-wave", "id": "corner-wave", "noise": "data", "algorithm": "bridge", "serial": "none", "levels": [0.25, 1.0, 0.5],
    }  # fmt: skip
    assert spec["data"]["missing"] == "refuse"
    assert spec["expect"][0]["no-collusion-gain"]["margin"] == 0.01
    assert spec["expect"][1] == {"rmse": {"at-most": 9}}


@pytest.mark.parametrize("path", shipped_scenarios(), ids=lambda path: path.stem)
def test_shipped_scenarios_are_found_by_name_and_read_as_themselves(path):
    shipped = read_scenario(path.stem)
    assert find_scenario(f"{path.stem}.yaml").name == path.name
    again = assemble(shipped.spec(), Problems(), shipped.base, path.stem)
    assert again.spec() == shipped.spec()


def loop():
    value = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    "document",
    [
        5, None, [1], b"x", {}, [], "", ".", "nothere", "\0", {"data": object()}, {"data": {1, 2}}, {"title": loop()}, {"seed": 10**5000},
        {**BASE, "seed": 10**999}, {**BASE, "sweep": {"": [1]}}, {**BASE, "sweep": {"..": [1]}}, {**BASE, "sweep": {"a[": [1]}},
        {**BASE, "title": np.datetime64("2020-01-01")},
    ],
    ids=lambda document: type(document).__name__,
)  # fmt: skip
def test_a_document_that_is_none_is_an_error_of_ours(document):
    with pytest.raises(AuditorError):
        read_scenario(document)


@pytest.fixture
def parts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "parts").mkdir()
    for name, rows in (("1", "1,2\n3,5\n"), ("2", "4,9\n7,1\n")):
        (tmp_path / "parts" / f"{name}.csv").write_text("a,b\n" + rows)
    return tmp_path / "parts"


def of_source(source):
    return {
        "schema": 1, "title": "t", "seed": 1, "data": {"source": source},
        "schemes": [{"name": "correlated", "levels": [1.0]}], "attacks": ["ndr"],
    }  # fmt: skip


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.slow_after_first
def test_a_folder_of_parts_is_a_table(parts, whole):
    document = of_source(f"{parts}/" if whole else "parts/")
    assert auditor.run(document).data[0].rows == 4
    # `jsonschema.validate` would check the schema itself each time
    schema = jsonschema.Draft202012Validator(scenario_schema())
    schema.validate(document)
    sources = {"parts": False, "table.docx": False, "table.xlsx#Pay": True, "table.CSV.GZ": True}
    assert {one: schema.is_valid(of_source(one)) for one in sources} == sources


def test_a_folder_without_a_slash_and_one_that_is_not_there_are_told(parts):
    for source, why in (
        ("parts", "write 'parts/' for the folder of that name"),
        ("nowhere/", "must be a registered source or a path"),
    ):
        with pytest.raises(AuditorError, match=why):
            auditor.run(of_source(source))
