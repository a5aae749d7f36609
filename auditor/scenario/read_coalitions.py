"""Section ``coalitions``: names, copy numbers and random draws."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, field_validator

from auditor.adversary.coalitions import MOST_COALITIONS, NAMED, Coalitions
from auditor.parameters import Whole
from auditor.scenario.problems import Form, read_entry


class Copies(Form):
    """A list of copies."""

    alone = "copies"
    copies: list[Annotated[int, Field(ge=1)]] = Field(
        min_length=1, description="copy numbers from 1, as [1, 3]"
    )

    @field_validator("copies")
    @classmethod
    def _distinct(cls, copies: list[int]) -> list[int]:
        if len(set(copies)) < len(copies):
            raise ValueError("names a copy twice")
        return copies


class Count(Form):
    """A number of copies or of random coalitions."""

    alone = "count"
    count: Whole = Field(ge=1, le=MOST_COALITIONS, description="how many, as 100")


COALITIONS: dict[str, type[Form]] = {
    **dict.fromkeys(NAMED, Form),
    "copies": Copies,
    "first": Count,
    "random": Count,
}


def parse_coalitions(value: Any) -> Coalitions:
    """Parse one entry of ``coalitions``, or a filter's ``coalition``.

    Raises
    ------
    FormError
        Invalid entry; the message states the expected form.
    """
    entry = {"copies": list(value)} if isinstance(value, (list, tuple)) else value
    name, form = read_entry(entry, COALITIONS, "copy numbers or a set of coalitions")
    copies = tuple(sorted(form.copies)) if name == "copies" else ()
    return Coalitions(name, copies, getattr(form, "count", 0))
