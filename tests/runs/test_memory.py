import gc
import re
from pathlib import Path

import pytest

import auditor
from auditor.adversary.view import View
from auditor.audit.attempts.opened import Opened
from auditor.audit.base.release import Release
from auditor.audit.numeric.views import Gathered
from tests.programs import python

FACTOR = 2.5


needs_proc = pytest.mark.skipif(
    not Path("/proc/self/status").exists(),
    reason="reads peak memory from /proc, which this system has not",
)


WHOLE_RUN = """
import re, sys
from pathlib import Path
from auditor.cli import main
try:
    main(["run", sys.argv[1], "--output", sys.argv[2], "--quiet", "--workers", "1"])
except SystemExit as end:
    assert end.code in (None, 0, 1), end.code  # an expectation may fail
print(int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) // 1024)
"""
KINDS = {
    "a few records": (4, 2, 2, "singles, prefixes, all", "llse"),
    "400 copies": (20_000, 2, 400, "singles, prefixes, all", "llse"),
    "gains of trees": (50_000, 2, 5, "subsets", "llse", "perfect", "no-collusion-gain"),
}


SEVERAL = """
data: {source: cps, columns: [age, salary], rows: 300, bin: {salary: {quantile: 4}}}
schemes:
  - {name: corner-wave, levels: [0.3, 0.6]}
  - {name: uniform-multilevel, levels: [0.5, 0.3]}
knowledge: [perfect, {estimated: {rows: 100}}]
coalitions: [subsets]
attacks: [llse, posterior, map-estimate]
measures: [within]
expect: [no-collusion-gain: {scheme: corner-wave}]
"""


def test_a_release_is_gone_when_its_audit_is_done(tmp_path):
    (tmp_path / "audit.yaml").write_text(SEVERAL)
    gc.collect()
    gc.disable()
    others = held()
    try:
        auditor.run(tmp_path / "audit.yaml")
        assert {id(each) for each in held()} <= {id(each) for each in others}
    finally:
        gc.enable()


def held():
    return [each for each in gc.get_objects() if type(each) in (Gathered, Opened, View, Release)]


@pytest.mark.slow
@needs_proc
@pytest.mark.parametrize("kind", KINDS)
def test_predicted_and_measured_of_the_whole_command_with_its_page(tmp_path, command, kind):
    rows, width, copies, coalitions, attacks, *others = KINDS[kind]
    knowledge, expect = (*others, *("perfect", "")[len(others) :])
    scenario = tmp_path / "audit.yaml"
    scenario.write_text(
        f"data: {{source: gaussian, rows: {rows}, spectrum: {{mean-variance: 1, count: 1, small: 0.5, attributes: {width}}}}}\n"
        f"schemes: [{{name: correlated, levels: {{uniform: [0.25, 1.0], count: {copies}}}}}]\n"
        f"coalitions: [{coalitions}]\nattacks: {attacks if attacks == 'all' else f'[{attacks}]'}\nknowledge: {knowledge}\n"
        f"expect: [{expect}]\n"
    )
    check_whole_run(command, scenario, tmp_path)


def check_whole_run(command, scenario, folder):
    _, outline, _ = command("check", scenario)
    predicted = float(re.search(r"([\d,]+) MB of memory", outline)[1].replace(",", ""))
    done = python("-c", WHOLE_RUN, scenario, folder / "out", check=True, timeout=300)
    measured = float(done.stdout.split()[-1])
    assert measured <= predicted <= measured * FACTOR, (predicted, measured)
