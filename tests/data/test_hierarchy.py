import numpy as np
import pandas as pd
import pytest

from auditor.base import ScenarioError
from auditor.data.columns.categorical_table import hierarchy_of
from auditor.runs.check import check_data
from auditor.runs.run_scenario import run_scenario
from auditor.scenario.read import read_scenario
from auditor.schemes.generalisation.classes import earth_mover
from tests.audited import cells

DISEASES = {  # li2007, Figure 1: height 3
    "respiratory": {"infection": ["flu", "pneumonia", "bronchitis"]},
    "digestive": {"stomach": ["gastric ulcer", "stomach cancer", "gastritis"]},
}


def test_distances_are_those_of_the_textbook_tree():
    tree = hierarchy_of(DISEASES)
    classes = [
        ["gastric ulcer", "stomach cancer", "pneumonia"],
        ["gastritis", "flu", "bronchitis"],
        ["gastritis", "bronchitis", "stomach cancer"],
    ]
    P_E = np.array([[part.count(leaf) / 3 for leaf in tree.leaves] for part in classes])
    assert earth_mover(P_E, P_E.mean(axis=0), range(6), tree.ancestors).max() == pytest.approx(
        8 / 27
    )


@pytest.fixture
def people(tmp_path):
    rows = [("engineer", "flu"), ("engineer", "bronchitis"), ("programmer", "flu"), ("programmer", "bronchitis"),
            ("nurse", "flu"), ("nurse", "ulcer"), ("doctor", "bronchitis"), ("doctor", "gastritis")]  # fmt: skip
    pd.DataFrame(rows, columns=["job", "disease"]).to_csv(tmp_path / "people.csv", index=False)
    return tmp_path


TEXT = """
schema: 1
data:
  source: people.csv
  columns: [job, disease]
  hierarchies:
    job:
      technical: [engineer, programmer]
      medical: [nurse, doctor]
    disease:
      respiratory: [flu, bronchitis]
      stomach: [gastritis, ulcer]
schemes:
  - {name: k-anonymity, quasi: [job], sensitive: disease, levels: [4], method: full-domain}
knowledge: [{known-attributes: [job]}]
coalitions: [singles]
attacks: [homogeneity, {name: similarity, height: 1}]
"""


def test_one_declaration_serves_scheme_and_attack(people):
    """k = 4 needs the two groups of jobs."""
    path = people / "audit.yaml"
    path.write_text(TEXT)
    found = {
        (m.attack, m.metric): m.value
        for m in cells(run_scenario(read_scenario(path)), attribute="*")
    }
    assert found["homogeneity", "disclosed"] == 0
    assert found["similarity", "disclosed"] == 0.5
    assert found["similarity", "linkage"] == 0.25


@pytest.mark.parametrize(("old", "new", "place", "says"), [
    ("[nurse, doctor]", "[nurse, engineer]", "9:24", "repeats a value"),
    ("[nurse, doctor]", "[nurse, 5]", "8:7", "numbers or text"),
    ("[nurse, doctor]", "nurse", "9:16", "must map a common property of values"),
    ("stomach: [gastritis, ulcer]", "stomach: {inner: [gastritis, ulcer]}", "11:7", "as deep in every branch"),
    (", doctor]", "]", "8:7", "2 records whose value its hierarchy does not list"),
    ("height: 1", "height: 2", "17:24", "below the root's, 2"),
    ("    disease:\n      respiratory: [flu, bronchitis]\n      stomach: [gastritis, ulcer]\n", "", "4:3", "disease"),
])  # fmt: skip
def test_mistakes_in_declaration_and_table_are_placed(people, old, new, place, says):
    path = people / "audit.yaml"
    path.write_text(TEXT.replace(old, new))
    with pytest.raises(ScenarioError) as raised:
        check_data(read_scenario(path))
    assert says in str(raised.value)
    assert f"audit.yaml:{place}:" in str(raised.value)
