"""A filter that an engine hands down to a scan, as a tree: references, values, calls of functions.

Functions have the names of Arrow's. Arrow shows an expression's parts to nobody but its own reader
of pickled ones, so that form is read here.
"""

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.model.errors import UnsupportedFeature


@dataclass(frozen=True, slots=True)
class Reference:
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Values:
    """One literal, or the members of a list that `is_in` looks into."""

    array: pa.Array


@dataclass(frozen=True, slots=True)
class Call:
    function: str
    arguments: tuple["Term", ...]


Term = Reference | Values | Call


def term_of(expression: pc.Expression) -> Term:
    """The tree of an Arrow expression; UnsupportedFeature if its form is not known."""
    (pickled,) = expression.__reduce__()[1]
    with pa.ipc.open_file(pickled) as file:
        literals = file.get_batch(0)
    steps = _pairs(literals.schema)
    return _term(*next(steps), steps, literals)


def references(term: Term) -> set[str]:
    """The top-level columns a term looks at."""
    match term:
        case Reference(path):
            return {path[0]}
        case Call(_, arguments):
            return set().union(*(references(argument) for argument in arguments))
        case Values():
            return set()


def unknown_filter(what: str) -> UnsupportedFeature:
    return UnsupportedFeature(
        f"the engine hands down a filter with {what}, which is not known here",
        hint="read the rows with scan(where=…) first, or report the query",
    )


def _term(key: str, value: str, steps: Iterator[tuple[str, str]], literals: pa.RecordBatch) -> Term:
    match key:
        case "field_ref":
            return Reference((value,))
        case "nested_field_ref":
            return Reference(tuple(next(steps)[1] for _ in range(int(value))))
        case "literal":
            return Values(literals.column(int(value)))
        case "call":
            return _call(value, steps, literals)
        case _:
            raise unknown_filter(f"a {key}")


def _call(function: str, steps: Iterator[tuple[str, str]], literals: pa.RecordBatch) -> Call:
    arguments: list[Term] = []
    for key, value in steps:
        if key == "end":
            return Call(function, tuple(arguments))
        if key != "options":
            arguments.append(_term(key, value, steps, literals))
            continue
        options = literals.column(int(value))
        if function == "is_in":
            arguments.append(Values(options.field("value_set").flatten()))
        elif function != "is_null" or options.field("nan_is_null")[0].as_py():
            raise unknown_filter(f"options of {function}")
    raise unknown_filter("no end")


class _CSchema(ctypes.Structure):
    """The beginning of a schema in Arrow's C data interface; keys may repeat in its metadata."""

    _fields_ = (
        ("format", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("metadata", ctypes.c_void_p),
    )


_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype = ctypes.c_void_p
_pointer_of.argtypes = [ctypes.py_object, ctypes.c_char_p]


def _pairs(schema: pa.Schema) -> Iterator[tuple[str, str]]:
    capsule = schema.__arrow_c_schema__()
    at = _CSchema.from_address(_pointer_of(capsule, b"arrow_schema")).metadata
    assert at is not None, "an expression has at least one part"
    count, at = _number(at)
    for _ in range(count):
        key, at = _text(at)
        value, at = _text(at)
        yield key, value


def _text(at: int) -> tuple[str, int]:
    length, at = _number(at)
    return ctypes.string_at(at, length).decode(), at + length


def _number(at: int) -> tuple[int, int]:
    return ctypes.c_int32.from_address(at).value, at + ctypes.sizeof(ctypes.c_int32)
