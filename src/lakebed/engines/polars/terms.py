"""A filter of Polars as a term; what is not known becomes a call that no reader knows either.

Polars tells an expression's parts in its JSON form alone, which may change with every version:
then less is left out of a scan, and no row is lost, for Polars applies its filter itself.
"""

import io
import json
from collections.abc import Sequence

import polars as pl
import pyarrow as pa
from polars.exceptions import PolarsError

from lakebed.engines.arrow.terms import Call, Reference, Term, Values
from lakebed.engines.arrow.types import is_list

_BINARY = {
    "Eq": "equal",
    "NotEq": "not_equal",
    "Lt": "less",
    "LtEq": "less_equal",
    "Gt": "greater",
    "GtEq": "greater_equal",
    "And": "and",
    "LogicalAnd": "and",
    "Or": "or",
    "LogicalOr": "or",
}
_BOOLEAN = {
    "Not": "invert",
    "IsNull": "is_null",
    "IsNotNull": "is_valid",
    "IsNan": "is_nan",
}
_BETWEEN = {
    "Both": ("greater_equal", "less_equal"),
    "Left": ("greater_equal", "less"),
    "Right": ("greater", "less_equal"),
    "None": ("greater", "less"),
}
_UNKNOWN = Call("unknown", ())


def term_of(expression: pl.Expr) -> Term:
    return _term(json.loads(expression.meta.serialize(format="json")))


def _term(node: object) -> Term:
    match node:
        case {"Column": str() as name}:
            return Reference((name,))
        case {"Literal": _}:
            array = _literal(node)
            return _UNKNOWN if array is None else Values(array)
        case {"BinaryExpr": {"left": left, "op": str() as operator, "right": right}}:
            function = _BINARY.get(operator)
            return Call(function, (_term(left), _term(right))) if function else _UNKNOWN
        case {"Function": {"input": [*inputs], "function": function}}:
            return _function(function, inputs)
        case _:
            return _UNKNOWN


def _function(function: object, inputs: Sequence[object]) -> Term:
    match function, inputs:
        case {"Boolean": str() as name}, [_]:
            known = _BOOLEAN.get(name)
            return Call(known, (_term(inputs[0]),)) if known else _UNKNOWN
        case {"Boolean": {"IsBetween": {"closed": closed}}}, [value, low, high]:
            above, below = _BETWEEN[str(closed)]
            bounds = (
                Call(above, (_term(value), _term(low))),
                Call(below, (_term(value), _term(high))),
            )
            return Call("and", bounds)
        case {"Boolean": {"IsIn": {"nulls_equal": False}}}, [value, {"Literal": _} as members]:
            return _is_in(_term(value), _term(members))
        case {"StringExpr": "StartsWith"}, [value, {"Literal": _} as prefix]:
            return Call("starts_with", (_term(value), _term(prefix)))
        case {"StructExpr": {"FieldByName": str() as name}}, [parent]:
            whole = _term(parent)
            return Reference((*whole.path, name)) if isinstance(whole, Reference) else _UNKNOWN
        case _:
            return _UNKNOWN


def _is_in(value: Term, members: Term) -> Term:
    """A list of members in one row, or a member in every row."""
    if isinstance(members, Values) and is_list(members.array.type):
        members = Values(members.array.flatten())
    return Call("is_in", (value, members))


def _literal(node: object) -> pa.Array | None:
    try:
        expression = pl.Expr.deserialize(io.StringIO(json.dumps(node)), format="json")
    except PolarsError:
        return None  # JSON has no NaN and no infinity
    return pl.select(expression).to_series().to_arrow()
