"""Results to plain JSON values and back, exactly, by their declared types.

Nothing is pickled and nothing that is read is trusted. pydantic validates strictly. Floats survive
to the last bit. NaN and infinity are written as Python's ``json`` does.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from typing import Annotated, Any, TypeVar, get_args

from pydantic import GetCoreSchemaHandler, TypeAdapter, ValidationError
from pydantic_core import CoreSchema, core_schema

K = TypeVar("K")
V = TypeVar("V")


class CodecError(ValueError):
    """A value is not of its declared type; the message names types, never a value."""


class _AsPairs:
    """Writes a mapping as a list of pairs, because JSON's keys are text."""

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        pair: Any = tuple.__class_getitem__(get_args(source))
        pairs = handler.generate_schema(list.__class_getitem__(pair))
        written = core_schema.plain_serializer_function_ser_schema(
            lambda mapping: list(mapping.items()), return_schema=pairs
        )
        return core_schema.no_info_after_validator_function(dict, pairs, serialization=written)


Pairs = Annotated[dict[K, V], _AsPairs()]
"""A mapping whose keys are no text."""


@lru_cache(maxsize=128)
def codec(declared: Any) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """Return functions that convert values of a type to JSON values and back.

    Parameters
    ----------
    declared : type
        Made of float, int, str, bool, None, Any (plain JSON values), Literal, ``X | None``, lists,
        tuples, `Pairs`, NamedTuples, dataclasses, TypedDicts, and dicts with text as keys.

    Returns
    -------
    encode, decode : callable
        ``decode`` raises ``CodecError`` for values that ``encode`` cannot write.
    """
    adapter = TypeAdapter(declared)

    def encode(value: Any) -> Any:
        return adapter.dump_python(value, mode="json", warnings=False)

    def decode(plain: Any) -> Any:
        try:
            return adapter.validate_json(json.dumps(plain), strict=True)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            raise CodecError(f"{first['type']} at {len(first['loc'])} levels below") from None

    return encode, decode
