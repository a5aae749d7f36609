import ast
from functools import cache

from tests.programs import ROOT, python

ROOMS = [
    ("base",), ("process",), ("registry",), ("numerics",), ("results",), ("data",), ("schemes",),
    ("adversary",), ("scenario",), ("expectations",), ("audit",), ("runs",),
    ("cli", "plugin", "testing", "__init__", "__main__"),
]  # fmt: skip
AUDIT_ROOMS = [
    ("numeric",), ("base",), ("measures", "law_tests"), ("insider",), ("insider_noise",),
    ("categorical", "attempts"), ("",),
]  # fmt: skip
DATA_ROOMS = [("columns",), ("formats",), ("",), ("sources",)]
SCHEME_ROOMS = [("base",), ("generalisation", "replacement"), ("",)]
"""On top the schemes themselves, which are plugins."""
NESTED = {
    "auditor.audit": AUDIT_ROOMS, "auditor.data": DATA_ROOMS, "auditor.schemes": SCHEME_ROOMS,
}  # fmt: skip
ATTACKS_MAY_USE = {"plugin", "adversary", "schemes", "numerics"}
MOST_ON_TOP, MOST_IN_A_ROOM = 14, 22


@cache
def imported(path):
    return frozenset(_imported(path))


def _imported(path):
    folders = path.relative_to(ROOT).parts[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.removeprefix("auditor_") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = folders[: len(folders) + 1 - node.level] if node.level else ()
            module = ".".join((*above, *filter(None, [node.module]))).removeprefix("auditor_")
            inside_plugins = module.partition(".")[0] == folders[0] != "auditor"
            assert bool(node.level) == inside_plugins, (
                f"{path}:{node.lineno}: imports are relative inside attacks/ and reports/, and nowhere else"
            )
            # `from auditor import registry` imports a module as much as `import auditor.registry`.
            names = [f"{module}.{alias.name}" for alias in node.names]
            yield from (name if is_module(name) else module for name in names)


@cache
def is_module(name):
    place = ROOT / name.replace(".", "/")
    return place.with_suffix(".py").exists() or (place / "__init__.py").exists()


def modules(folder):
    return sorted((ROOT / folder).rglob("*.py"))


def name_of(path):
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def within(path, package):
    return {name for name in imported(path) if name.partition(".")[0] == package}


def floor_of(part, rooms):
    (floor,) = [number for number, names in enumerate(rooms) if part in names] or [-1]
    assert floor >= 0, f"{part!r} is in no room: say where it belongs in {rooms}"
    return floor


def room(name):
    """The first part of a module's dotted name below `auditor`."""
    return name.split(".")[1] if "." in name else "__init__"


def nested_room(name, house):
    part = name.removeprefix(house).split(".")[1:2]
    return part[0] if part and (ROOT / house.replace(".", "/") / part[0]).is_dir() else ""


def test_rooms_import_from_below_only():
    for path in (p for p in modules("auditor") if p != ROOT / "auditor/__init__.py"):
        own = floor_of(room(name_of(path)), ROOMS)
        above = {
            name
            for name in within(path, "auditor")
            if name != "auditor" and floor_of(room(name), ROOMS) > own
        }
        assert not above, f"{name_of(path)} imports from above: {sorted(above)}"


def test_rooms_in_rooms_import_from_below_only():
    for house in NESTED:
        """Rooms of one floor do not import each other either."""
        rooms, above = NESTED[house], set()
        for path in modules(house.replace(".", "/")):
            own = nested_room(name_of(path), house)
            for name in within(path, house.partition(".")[0]):
                if name.startswith(house + "."):
                    other = nested_room(name, house)
                    if other != own and floor_of(other, rooms) >= floor_of(own, rooms):
                        above.add((name_of(path), name))
        assert not above


def test_modules_form_no_circle():
    graph = {
        name_of(path): {n for n in imported(path) if is_module(n)}
        for folder in ("auditor", "attacks", "reports")
        for path in modules(folder)
    }
    # lends names of all rooms, lazily; everybody imports it by importing anything
    graph.pop("auditor")
    state = {}

    def look(name, trail):
        state[name] = "open"
        for other in sorted(graph[name] & graph.keys() - {name}):
            assert state.get(other) != "open", " → ".join((*trail, name, other))
            if other not in state:
                look(other, (*trail, name))
        state[name] = "done"

    for name in graph:
        if name not in state:
            look(name, ())


def test_rooms_are_of_a_size_to_find_one_s_way():
    assert len(list((ROOT / "auditor").glob("*.py"))) <= MOST_ON_TOP
    folders = {path.parent for folder in ("auditor", "reports") for path in modules(folder)} - {
        ROOT / "auditor"
    }
    assert not {
        str(folder) for folder in folders if len(list(folder.glob("*.py"))) > MOST_IN_A_ROOM
    }


def test_the_core_imports_no_attack_and_no_report():
    for path in modules("auditor"):
        assert not {
            name
            for name in imported(path)
            if name.partition(".")[0] in ("attacks", "reports", "scenarios", "tests")
        }, path


def test_reports_read_results_and_nothing_else():
    for path in modules("reports"):
        ours = {name for name in imported(path) if name.partition(".")[0] in ("auditor", "attacks")}
        assert not {name for name in ours if room(name) not in ("results", "registry", "base")}, (
            path
        )
        assert not {
            name for name in imported(path) if name.partition(".")[0] in ("pandas", "scipy")
        }, path


def test_attacks_import_the_facade_and_arithmetic():
    for path in modules("attacks"):
        assert not {
            name for name in imported(path) if name.partition(".")[0] in ("reports", "tests")
        }, path
        assert {room(name) for name in within(path, "auditor")} <= ATTACKS_MAY_USE, path


def loaded_by(code):
    """The modules that a fresh interpreter has after some code."""
    script = f"import sys\ntry:\n    {code}\nexcept SystemExit:\n    pass\nprint(*sys.modules, file=sys.stderr)"
    return set(python("-c", script, cwd=ROOT, check=True).stderr.split())


def test_nothing_heavy_is_loaded_before_a_command_runs():
    for code in [
        "from auditor.cli import main; main(['--help'])",
        "from auditor.cli import main; main(['run', '--help'])",
        "import auditor",
    ]:
        heavy = {
            *("numpy pandas pydantic scipy sklearn pyarrow altair joblib jinja2 yaml auditor.registry").split(),
        }  # fmt: skip
        assert not heavy & loaded_by(code)


def test_check_waits_for_no_library_that_it_does_not_need():
    heavy = {*"pandas scipy.linalg scipy.special sklearn auditor_reports jinja2".split()}
    shipped = {*"pyarrow scipy threadpoolctl numpy.random".split()}  # its outline is known
    script = "import sys, atexit\natexit.register(lambda: print(*sys.modules, file=sys.stderr))\nfrom auditor.cli import main\nmain()"
    for scenario in ("quickstart", "huang2005-exp1", "li2012-fig3"):
        done = python("-c", script, "check", scenario, cwd=ROOT, check=True)
        assert "valid" in done.stdout
        loaded = set(done.stderr.split())
        assert not (heavy | shipped if scenario == "quickstart" else heavy) & loaded, scenario
