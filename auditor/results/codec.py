"""Results to plain JSON values and back, exactly, as their types are declared: nothing is pickled and nothing read is trusted.

A NamedTuple or a dataclass becomes the list of its fields, a mapping with keys that are no text a
list of pairs, and a list of NamedTuples a table: column by column, every distinct object once.
Floats survive to the last bit, as Python writes the shortest text that reads back as the same; NaN
and infinity are written as Python's ``json`` does.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Literal, NoReturn, Union, get_args, get_origin, get_type_hints, is_typeddict

import numpy as np

from auditor.results.measurements import NUMBERS, Coded, Measurements, numbers
from auditor.results.records import Measurement

Convert = Callable[[Any], Any]
_SCALARS: dict[Any, tuple[type, ...]] = {
    float: (float, int),
    int: (int,),
    str: (str,),
    bool: (bool,),
    type(None): (type(None),),
}


class CodecError(ValueError):
    """A value is not what its declared type says; the message names types only, never a value."""


@lru_cache(maxsize=128)
def codec(declared: Any) -> tuple[Convert, Convert]:
    """Return the functions that turn values of a declared type into JSON values, and such values back.

    Parameters
    ----------
    declared : type
        Made of float, int, str, bool, None, Any (plain JSON values), Literal, ``X | None``, lists,
        tuples, dicts, NamedTuples, dataclasses and TypedDicts.

    Returns
    -------
    encode, decode : callable
        ``decode`` raises ``CodecError`` for anything that ``encode`` could not have written.

    Raises
    ------
    TypeError
        Another type is declared.
    """
    origin, arguments = get_origin(declared), get_args(declared)
    if declared is Any:
        return _same, _same  # what ``json`` reads is plain: it cannot be anything else
    if declared in _SCALARS:
        return _scalar(declared)
    if origin is Literal:
        return _same, _one_of(arguments)
    if origin in (Union, types.UnionType) and len(arguments) == 2 and type(None) in arguments:
        return _optional(*codec(next(part for part in arguments if part is not type(None))))
    if declared is Measurements:
        return _measurements()
    if origin is list and isinstance(arguments[0], type) and issubclass(arguments[0], tuple):
        return _table(arguments[0])
    if origin in (list, tuple) and (origin is list or arguments[-1] is Ellipsis):
        return _sequence(origin, *codec(arguments[0]))
    if origin is tuple:
        return _record([codec(part) for part in arguments], _same, tuple)
    if origin is dict:
        return _mapping(arguments[0] is str, codec(arguments[0]), codec(arguments[1]))
    if isinstance(declared, type) and is_typeddict(declared):
        return _keyed({name: codec(part) for name, part in get_type_hints(declared).items()})
    if dataclasses.is_dataclass(declared) or (
        isinstance(declared, type) and issubclass(declared, tuple)
    ):
        return _fields(declared)
    raise TypeError(f"no codec for {declared!r}")


def _fail(wanted: str, found: object) -> NoReturn:
    raise CodecError(f"{wanted} was expected where there is {type(found).__name__}")


def _same(value: Any) -> Any:
    return value


def _scalar(declared: Any) -> tuple[Convert, Convert]:
    allowed, bare = _SCALARS[declared], declared is bool

    def decode(value: Any) -> Any:
        if not isinstance(value, allowed) or (value.__class__ is bool and not bare):
            _fail(declared.__name__, value)
        return value

    return _same, decode


def _one_of(values: tuple[Any, ...]) -> Convert:
    def decode(value: Any) -> Any:
        if not isinstance(value, str) or value not in values:
            _fail(f"one of {', '.join(map(str, values))}", value)
        return value

    return decode


def _optional(encode: Convert, decode: Convert) -> tuple[Convert, Convert]:
    def encoded(value: Any) -> Any:
        return None if value is None else encode(value)

    def decoded(value: Any) -> Any:
        return None if value is None else decode(value)

    return (_same if encode is _same else encoded), decoded


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        _fail("list", value)
    return value


def _sequence(kind: Any, encode: Convert, decode: Convert) -> tuple[Convert, Convert]:
    def encoded(value: Any) -> Any:
        return [encode(item) for item in value]

    def decoded(value: Any) -> Any:
        return kind([decode(item) for item in _list(value)])

    return (_same if encode is _same else encoded), decoded


def _record(
    parts: list[tuple[Convert, Convert]], take: Convert, make: Convert
) -> tuple[Convert, Convert]:
    """A fixed number of fields in order; ``take`` gives a value's fields, ``make`` the value of a list of them."""
    encoders, decoders = [encode for encode, _ in parts], [decode for _, decode in parts]
    trivial = all(encode is _same for encode in encoders) and take is _same

    def encoded(value: Any) -> Any:
        return [encode(item) for encode, item in zip(encoders, take(value), strict=True)]

    def decoded(value: Any) -> Any:
        if len(_list(value)) != len(decoders):
            _fail(f"{len(decoders)} fields", value)
        return make([decode(item) for decode, item in zip(decoders, value, strict=True)])

    return (_same if trivial else encoded), decoded


def _fields(declared: Any) -> tuple[Convert, Convert]:
    make: Any = declared
    hints = get_type_hints(declared)
    if not dataclasses.is_dataclass(declared):
        names: tuple[str, ...] = declared._fields
        return _record([codec(hints[name]) for name in names], _same, declared._make)
    names = tuple(field.name for field in dataclasses.fields(declared) if field.init)

    def take(value: Any) -> list[Any]:
        return [getattr(value, name) for name in names]

    return _record([codec(hints[name]) for name in names], take, lambda values: make(*values))


def _table(declared: Any) -> tuple[Convert, Convert]:
    hints = get_type_hints(declared)
    columns = [_column(hints[name]) for name in declared._fields]

    def encoded(records: Any) -> Any:
        return [
            encode(column)
            for (encode, _), column in zip(
                columns, zip(*records, strict=True), strict=bool(records)
            )
        ]

    def decoded(value: Any) -> Any:
        if not _list(value):
            return []
        if len(value) != len(columns):
            _fail(f"{len(columns)} columns", value)
        found = [decode(column) for (_, decode), column in zip(columns, value, strict=True)]
        if len({len(column) for column in found}) != 1:
            _fail("columns of one length", value)
        return list(map(declared._make, zip(*found, strict=True)))

    return encoded, decoded


def _measurements() -> tuple[Convert, Convert]:
    """The table of measurements, whose columns stay columns: thousands of rows are no records on their way."""
    hints = get_type_hints(Measurement)
    parts = {field: codec(hints[field]) for field in Measurement._fields}

    def encoded(table: Measurements) -> Any:
        if not len(table):
            return []
        return [
            [list(map(parts[field][0], column.values)), column.places.tolist()]
            if isinstance(column, Coded)
            else table.column(field)
            for field, column in table.columns.items()
        ]

    def decoded(value: Any) -> Any:
        if not _list(value):
            return Measurements.of([])
        if len(value) != len(parts):
            _fail(f"{len(parts)} columns", value)
        columns: dict[str, Any] = {}
        for (field, (_, decode)), column in zip(parts.items(), value, strict=True):
            if field in NUMBERS:
                for kind in {each.__class__: each for each in _list(column)}.values():
                    decode(kind)  # one of every type there is
                columns[field] = numbers(column)
            else:
                distinct, places = _coded(column, decode)
                known = Coded.of(distinct)
                columns[field] = Coded(known.places[np.array(places, dtype=np.intp)], known.values)
        if (
            len(
                {
                    len(column if field in NUMBERS else column.places)
                    for field, column in columns.items()
                }
            )
            != 1
        ):
            _fail("columns of one length", value)
        return Measurements(columns)

    return encoded, decoded


def _column(declared: Any) -> tuple[Convert, Convert]:
    encode, decode = codec(declared)
    if declared in (float, float | None):
        return list, lambda value: [decode(item) for item in _list(value)]

    def encoded(values: Any) -> Any:
        # All but text by identity: 1, 1.0 and True are equal, but not the same.
        keys = [value if value.__class__ is str else id(value) for value in values]
        distinct = dict(zip(keys, values, strict=True))
        places = {key: place for place, key in enumerate(distinct)}
        return [list(map(encode, distinct.values())), [places[key] for key in keys]]

    def decoded(value: Any) -> Any:
        distinct, places = _coded(value, decode)
        return [distinct[place] for place in places]

    return encoded, decoded


def _coded(value: Any, decode: Convert) -> tuple[list[Any], list[int]]:
    """Return a column's distinct values, and by row the place of its own among them."""
    if len(_list(value)) != 2:
        _fail("values and places", value)
    distinct, places = [decode(item) for item in _list(value[0])], _list(value[1])
    if not set(map(type, places)) <= {int} or (
        places and not 0 <= min(places) <= max(places) < len(distinct)
    ):
        _fail("places", value)
    return distinct, places


def _mapping(
    by_text: bool, key: tuple[Convert, Convert], item: tuple[Convert, Convert]
) -> tuple[Convert, Convert]:
    def encoded(value: Any) -> Any:
        if by_text:
            return {name: item[0](part) for name, part in value.items()}
        return [[key[0](name), item[0](part)] for name, part in value.items()]

    def decoded(value: Any) -> Any:
        if by_text:
            if not isinstance(value, dict):
                _fail("mapping", value)
            return {name: item[1](part) for name, part in value.items()}
        pairs = [_list(pair) for pair in _list(value)]
        if any(len(pair) != 2 for pair in pairs):
            _fail("pairs", value)
        return {key[1](name): item[1](part) for name, part in pairs}

    return (_same if by_text and item[0] is _same else encoded), decoded


def _keyed(parts: dict[str, tuple[Convert, Convert]]) -> tuple[Convert, Convert]:
    """A TypedDict; keys may be left out."""

    def encoded(value: Any) -> Any:
        return {name: parts[name][0](part) for name, part in value.items()}

    def decoded(value: Any) -> Any:
        if not isinstance(value, dict) or not parts.keys() >= value.keys():
            _fail(f"mapping of {', '.join(parts)}", value)
        return {name: parts[name][1](part) for name, part in value.items()}

    return encoded, decoded
