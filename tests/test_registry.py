import re

import numpy as np
import pandas as pd
import pytest
from plugin_packages import BROKEN_ATTACKS, install

import auditor
from auditor import registry
from auditor.base import PluginError
from auditor.registry import Plugin, register
from auditor.results.metrics import works_in
from auditor.runs.perturb import Release
from auditor.testing import check_attack, check_plugin, check_scheme, check_source
from tests.programs import environment, python
from tests.test_citations import SECTIONS

PLUGINS = [(kind, name) for kind in registry.KINDS for name in registry.names(kind)]
ATTACKS = registry.names("attack")

KNOWLEDGE = {
    "perfect": "perfect", "estimated": {"estimated": {"rows": 300}}, "known-records": {"known-records": 200},
    "known-sample": {"known-sample": 300}, "unmatched-records": {"unmatched-records": 200},
    "known-attributes": {"known-attributes": ["a"]}, "model": {"model": {"target": "b", "predictors": ["a"], "depth": 2, "rows": 300}},
}  # fmt: skip
PARAMETERS = {
    "inline": {"values": {"x": [2.0, 1.0], "y": [0.5, None]}},
    "gaussian": {"covariance": [[1.0, 0.5], [0.5, 2.0]]},
    "metric": {"metric": "rmse", "at-most": 1.0}, "collusion-gain": {"at-least": 0.5},
    "ranking": {"order": ["llse", "ndr"]}, "similarity": {"edges": [0.0, 5.0, 10.0]},
    "growth-rate": {"against": "data.rows", "at-most": 1.0},
    "corner-wave": {"noise": {"variance": 2.5}, "algorithm": "on-demand"},
    "geometric-multilevel": {"noise": {"variances": [2.5, 100.0, 0.3]}, "unit": 0.5},
    "independent": {"distribution": "uniform"},
    "rotation-noise": {"noise": "corner-wave", "rotations": "shared", "translation": True},
    "uniform-multilevel": {"implementation": "multi-pert"},
}  # fmt: skip


def knowledge_of(attack):
    names = registry.get("attack", attack).knowledge
    return next((spelt for name, spelt in KNOWLEDGE.items() if not names or name in names), None)


ADDITIVE = [
    name
    for name in ATTACKS
    if "additive" in registry.get("attack", name).families and knowledge_of(name) is not None
]


def people(rows=400, seed=1):
    rng = np.random.default_rng(seed)
    values = 100 + 10 * (rng.normal(size=(rows, 1)) + 0.05 * rng.normal(size=(rows, 3)))
    return pd.DataFrame(values, columns=["a", "b", "c"])


CHECKS = {"attack": check_attack, "scheme": check_scheme, "source": check_source}


DEAR = {
    "distribution-analysis", "ica", "joint-distribution-analysis", "known-io-boosting", "mixture-estimate",
    "quantile-matching",
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "name"),
    [pytest.param(*plugin, marks=pytest.mark.slow if plugin[1] in DEAR else ()) for plugin in PLUGINS],
)  # fmt: skip
def test_a_plugin_keeps_the_contract_of_its_kind(kind, name):
    cls = registry.get(kind, name)
    assert cls.kind == kind
    CHECKS.get(kind, check_plugin)(cls)


@pytest.mark.parametrize(
    ("kind", "name"), [plugin for plugin in PLUGINS if plugin[1] in PARAMETERS]
)
def test_parameters_other_than_the_defaults_keep_it_too(kind, name):
    CHECKS.get(kind, check_plugin)(registry.get(kind, name), PARAMETERS[name])


def test_a_plugin_s_paper_is_in_the_bibliography():
    for kind, name in PLUGINS:
        reference = registry.get(kind, name).reference
        if name == "published":
            assert reference == ""
        elif kind in ("attack", "scheme", "expectation"):
            assert re.findall(r"[a-z]+\d{4}", reference) == works_in(reference) != []


PLACE = re.compile(
    r"(chapter|sections?|eqs?\.|[Aa]lgorithm|Protocol|Theorem|Lemma|Table|Figure|Appendix) ([IVX]+\b|[A-Z]?\d)"
)


def test_an_attack_and_a_scheme_say_where_in_their_papers_they_stand():
    for kind, name in PLUGINS:
        if kind not in ("attack", "scheme") or name == "published":
            continue
        for reference in registry.get(kind, name).reference.split("; "):
            assert PLACE.search(reference) or SECTIONS.keys().isdisjoint(works_in(reference))


SCHEMES = [
    name for name in registry.names("scheme") if registry.get("scheme", name).family == "additive"
]
SCHEMES.remove("published")


@pytest.mark.parametrize("scheme", SCHEMES)
def test_extending_a_release_leaves_the_copies_that_are_out_alone(scheme):
    cls = registry.get("scheme", scheme)
    X = people(50).round() if cls.on_lattice else people(50)
    low, high, between = cls.trial_levels
    release = auditor.perturb(X, scheme, [high, low], seed=7)
    before = [copy.copy() for copy in release.copies]
    longer = release.extend([between], seed=8)
    assert len(longer.copies) == 3
    for old, kept, new in zip(before, release.copies, longer.copies, strict=False):
        pd.testing.assert_frame_equal(old, kept)
        pd.testing.assert_frame_equal(old, new)


def attacked(name, level=0.5, release=None):
    release = release or auditor.perturb(people(), "independent", [level, 2 * level], seed=2)
    how = {
        "knowledge": knowledge_of(name), "coalition": [1, 2], **registry.get("attack", name).trial,
    }  # fmt: skip
    return release, auditor.attack(name, release, **how)


PERFECT = [name for name in ADDITIVE if knowledge_of(name) == "perfect"]


@pytest.mark.parametrize(
    "name", [name for name in PERFECT if not registry.get("attack", name).serial]
)
def test_the_order_of_the_rows_is_of_no_account(name):
    release, plain = attacked(name)
    order = np.random.default_rng(0).permutation(len(release.original))
    copies = tuple(copy.iloc[order] for copy in release.copies)
    mixed_up = Release(release.original.iloc[order], copies, release.levels, release.scheme)
    _, mixed = attacked(name, release=mixed_up)
    # Sums in another order differ by rounding, which an eigenvector magnifies; a row out of place
    # differs by about 10.
    np.testing.assert_allclose(mixed.values.to_numpy(), plain.values.to_numpy()[order], atol=1e-4)


@pytest.mark.parametrize("name", ADDITIVE)
def test_a_planted_leak_is_found(name):
    assert attacked(name, level=1e-5)[1].normalized_error < 0.02


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in ADDITIVE
        if knowledge_of(name) in ("perfect", KNOWLEDGE["estimated"], KNOWLEDGE["model"])
    ],
)
def test_nothing_is_found_where_nothing_is_left(name):
    assert attacked(name, level=1e6)[1].normalized_error > 0.9


def test_a_duplicate_name_is_an_error_that_names_both_places():
    for kind, name in PLUGINS[::8]:
        cls = registry.get(kind, name)
        fields = {"__doc__": "A double.", "__module__": __name__, "kind": kind, "name": name}
        double = type("Double", (Plugin,), fields)
        with pytest.raises(PluginError) as caught:
            register(double)
        message = str(caught.value)
        assert f"{kind} {name!r} is registered twice" in message
        assert f"{cls.__module__}.{cls.__qualname__}" in message
        assert f"{__name__}.Double" in message
        assert registry.get(kind, name) is cls


def test_an_old_name_is_still_read():
    for old, new in [("theorem-4", "no-collusion-gain"), ("multi-pert-coin", "neighbour-coin")]:
        assert registry.get("expectation", old) is registry.get("expectation", new)
        assert old not in registry.names("expectation")


def test_a_plugin_without_name_kind_or_docstring_is_refused():
    for fields, told in [
        ({"kind": "attack", "name": ""}, "needs a `name`"),
        ({"kind": "sorcery", "name": "x"}, "needs a `name` and one of the plugin base classes"),
        ({"name": "x"}, "needs a `name`"),
        ({"kind": "attack", "name": "x", "__doc__": None}, "has no docstring"),
    ]:
        with pytest.raises(PluginError, match=told):
            register(type("Odd", (Plugin,), {"__doc__": "Odd.", **fields}))


def test_an_unknown_name_lists_the_close_ones():
    for kind, wrong, close in [
        ("attack", "lsse", "llse"),
        ("scheme", "cornerwave", "corner-wave"),
        ("source", "wisconsn", "wisconsin"),
    ]:
        with pytest.raises(PluginError, match=f"unknown {kind} '{wrong}'; did you mean '{close}'"):
            registry.get(kind, wrong)
        assert not registry.find(wrong)


def command(site, *arguments, cwd):
    return python("-m", "auditor", *arguments, cwd=cwd, env=environment(site))


@pytest.fixture(scope="module")
def troublesome(tmp_path_factory):
    return install(
        tmp_path_factory.mktemp("site"),
        "trouble",
        absent="import no_such_package_anywhere\n",
        double='''
            """Takes a name that is taken."""

            from auditor.adversary.attack import LinearAttack
            from auditor.registry import register


            @register
            class Mine(LinearAttack):
                """Mine."""

                name = "llse"
        ''',
        leaves="raise SystemExit(3)\n",
        fine=BROKEN_ATTACKS,
    )


@pytest.mark.slow
def test_a_module_that_cannot_be_imported_is_reported_and_the_others_work(troublesome, tmp_path):
    done = command(troublesome, "list", "attacks", cwd=tmp_path)
    assert done.returncode == 0
    assert "raises-on-pairs" in done.stdout
    assert "llse" in done.stdout
    warnings = done.stderr.splitlines()
    said = "warning: plugin module trouble.absent (entry point 'trouble') cannot be imported: ModuleNotFoundError"
    assert said in warnings[0]
    assert "attack 'llse' is registered twice: by auditor_attacks.llse.JointLLSE" in done.stderr
    assert "trouble.double.Mine" in done.stderr
    assert "trouble.leaves" in done.stderr
    assert len(warnings) == 3


def test_an_unknown_name_tells_of_the_modules_that_could_not_be_imported(troublesome, tmp_path):
    (tmp_path / "x.yaml").write_text(
        "data: iris\nschemes: [{name: corner-wave, levels: [1]}]\nattacks: [absent]\n"
    )
    done = command(troublesome, "run", "x.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert "x.yaml:3:11: attacks[0] names an unknown attack 'absent'" in done.stderr
    assert "plugin module trouble.absent" in done.stderr
