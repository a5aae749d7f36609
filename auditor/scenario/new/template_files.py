"""Templates: commented YAML scenarios that run unchanged."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable

from auditor.errors import AuditorError, did_you_mean
from auditor.process.shipped import shipped_folder

BESIDE = {"published": ("published-copies/copy-1.csv", "published-copies/copy-2.csv")}
"""Copies that a template audits, by template name."""


def template_names() -> list[str]:
    """Return the names of all templates except the default."""
    return sorted(
        item.name.removesuffix(".yaml")
        for item in _folder().iterdir()
        if item.name.endswith(".yaml")
    )


def template(name: str | None = None) -> bytes:
    """Return a template's YAML.

    Raises
    ------
    AuditorError
        Unknown template.
    """
    if name is None:
        return files("auditor").joinpath("scenario/template.yaml").read_bytes()
    if name not in template_names():
        raise AuditorError(f"there is no template {name!r}{did_you_mean(name, template_names())}")
    return _folder().joinpath(f"{name}.yaml").read_bytes()


def beside(name: str | None) -> dict[str, bytes]:
    """Return a template's additional files by relative path."""
    return {
        path: shipped_folder().joinpath(path).read_bytes() for path in BESIDE.get(name or "", ())
    }


def _folder() -> Traversable:
    return files("auditor").joinpath("scenario/new/templates")
