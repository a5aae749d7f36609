"""Shipped scenarios judge every attack, where it wins and where it loses."""

from functools import cache

import yaml

from auditor import registry
from auditor.process.environment import shipped_scenarios
from auditor.scenario.read import read_scenario


@cache
def judged():
    """Return the scenarios with expectations on each attack."""
    found = {}
    for path in shipped_scenarios():
        uses = {use.id: use.name for use in read_scenario(path).attacks}
        expect = yaml.safe_load(path.read_text(encoding="utf-8"))["expect"]
        filters = [
            where or {} for item in expect if isinstance(item, dict) for where in item.values()
        ]
        for where in filters:
            named = [*where.get("order", ()), where.get("attack", list(uses))]
            flat = [one for each in named for one in (each if isinstance(each, list) else [each])]
            for name in {uses[one] for one in flat if isinstance(one, str) and one in uses}:
                found.setdefault(name, set()).add(f"{path.stem} {where}")
    return found


def test_two_expectations_of_shipped_scenarios_are_about_every_attack():
    assert [name for name in registry.names("attack") if len(judged().get(name, ())) < 2] == []
