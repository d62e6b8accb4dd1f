"""What a pushed filter means: a predicate to leave files and rows out by, and the rows it keeps.

Engines take a pushed filter as done, so it means here what it means to them: SQL's three-valued
logic, NaN equal to itself and greater than every other number, IN with NULL unknown.
"""

from collections.abc import Callable, Sequence
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.engines.arrow.exact import TypeRefused, ValueRefused, exact
from lakebed.engines.arrow.nested import plain
from lakebed.engines.arrow.terms import Call, Reference, Term, Values, unknown_filter
from lakebed.engines.arrow.transform import stored
from lakebed.model.expressions import (
    FLIPPED,
    And,
    Column,
    Compare,
    Constant,
    In,
    IsNull,
    Like,
    Not,
    Operator,
    Or,
    Predicate,
)
from lakebed.model.schema import Schema
from lakebed.model.types import DecimalType, FixedType, Primitive, Scalar, Stored

_OPERATORS: dict[str, Operator] = {
    "equal": "=",
    "not_equal": "!=",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
}
_AND, _OR = ("and", "and_kleene"), ("or", "or_kleene")
_NAN = float("nan")


def as_predicate(term: Term, schema: Schema) -> Predicate | None:
    """The term as a bound predicate; None if predicates cannot say it exactly."""
    match term:
        case Reference():
            column = _column(term, schema)
            return Compare(column, "=", True) if column and _is(column, "boolean") else None
        case Values(array):
            return Constant(array[0].as_py()) if pa.types.is_boolean(array.type) else None
        case Call("invert", (operand,)):
            inner = as_predicate(operand, schema)
            return None if inner is None else Not(inner)
        case Call(function, operands) if function in (*_AND, *_OR):
            parts = [as_predicate(operand, schema) for operand in operands]
            known = tuple(part for part in parts if part is not None)
            if len(known) < len(parts):
                return None
            return And(known) if function in _AND else Or(known)
        case Call(function, arguments):
            return _leaf(function, arguments, schema)


def weaker_predicate(term: Term, schema: Schema) -> Predicate | None:
    """A bound predicate that is TRUE wherever the term is, perhaps elsewhere too; None: no idea."""
    if not isinstance(term, Call) or term.function not in (*_AND, *_OR):
        return as_predicate(term, schema)
    parts = [weaker_predicate(operand, schema) for operand in term.arguments]
    known = tuple(part for part in parts if part is not None)
    if term.function in _AND:
        return And(known) if known else None
    return Or(known) if len(known) == len(parts) else None


def told_apart(term: Term, schema: Schema) -> tuple[Predicate | None, Term | None]:
    """What a predicate can say of a filter, and the filter again unless that is all of it."""
    exact = as_predicate(term, schema)
    return (weaker_predicate(term, schema), term) if exact is None else (exact, None)


def holds(term: Term, batch: pa.RecordBatch) -> pa.BooleanArray:
    """TRUE, FALSE or NULL for every row."""
    answer = _evaluated(term, batch)
    return pa.repeat(answer, batch.num_rows) if isinstance(answer, pa.Scalar) else answer


def _leaf(function: str, arguments: Sequence[Term], schema: Schema) -> Predicate | None:
    match function, arguments:
        case "is_null" | "is_valid", (Reference() as reference,):
            column = _column(reference, schema)
            if column is None:
                return None
            return IsNull(column) if function == "is_null" else Not(IsNull(column))
        case "is_nan", (Reference() as reference,):
            column = _column(reference, schema)
            return Compare(column, "=", _NAN) if column and _is(column, "float", "double") else None
        case "is_in", (Reference() as reference, Values(array)):
            return _in(_column(reference, schema), array)
        case "starts_with", (Reference() as reference, Values(array)):
            return _starts_with(_column(reference, schema), array)
        case name, (Reference() as reference, Values(array)) if name in _OPERATORS:
            return _compare(_column(reference, schema), _OPERATORS[name], array)
        case name, (Values(array), Reference() as reference) if name in _OPERATORS:
            return _compare(_column(reference, schema), FLIPPED[_OPERATORS[name]], array)
    return None


def _column(reference: Reference, schema: Schema) -> Column | None:
    field = schema.find(reference.path)
    if field is None:
        return None
    scalar = field.type if isinstance(field.type, Primitive | DecimalType | FixedType) else None
    return Column(tuple(f.name for f in schema.path_of(field.id)), field.id, scalar)


def _is(column: Column, *names: str) -> bool:
    return str(column.type) in names


def _compare(column: Column | None, operator: Operator, array: pa.Array) -> Predicate | None:
    if column is None or column.type is None:
        return None
    if array.null_count:
        return Constant(None)
    values = _stored(array, column.type)
    return None if values is None else Compare(column, operator, values[0])


def _in(column: Column | None, array: pa.Array) -> Predicate | None:
    if column is None or column.type is None:
        return None
    values = _stored(array.drop_null(), column.type)
    return None if not values else In(column, tuple(values), bool(array.null_count))


def _starts_with(column: Column | None, array: pa.Array) -> Predicate | None:
    prefix = array[0].as_py()
    if not column or not _is(column, "string") or not isinstance(prefix, str):
        return None
    return Like(column, "".join(f"\\{c}" if c in "%_\\" else c for c in prefix) + "%")


def _stored(array: pa.Array, kind: Scalar) -> list[Stored] | None:
    """Literals in the column's stored form; None if it holds no such values."""
    kind = Primitive("double") if kind == Primitive("float") else kind  # compared as doubles
    try:
        return list(stored(exact(plain(array), kind), kind).to_pylist())
    except (TypeRefused, ValueRefused):
        return None


def _evaluated(term: Term, batch: pa.RecordBatch) -> pa.Array | pa.Scalar:
    match term:
        case Reference(path):
            whole = batch.column(path[0])
            return pc.struct_field(whole, path[1:]) if path[1:] else whole
        case Values(array):
            return array[0]
        case Call("is_in", (operand, Values(array))):
            found = _evaluated(operand, batch)
            equal = [_compared("equal", found, member) for member in array]
            return reduce(pc.or_kleene, equal, pa.scalar(False))
        case Call(function, operands):
            return _called(function, [_evaluated(operand, batch) for operand in operands])


def _called(function: str, arguments: list[pa.Array | pa.Scalar]) -> pa.Array | pa.Scalar:
    if function in _OPERATORS:
        return _compared(function, *arguments)
    if function in _AND:
        return reduce(pc.and_kleene, arguments)
    if function in _OR:
        return reduce(pc.or_kleene, arguments)
    plainly: dict[str, Callable[..., pa.Array | pa.Scalar]] = {
        "invert": pc.invert,
        "is_nan": pc.is_nan,
        "is_null": pc.is_null,
        "is_valid": pc.is_valid,
    }
    if function not in plainly:
        raise unknown_filter(f"the function {function}")
    return plainly[function](*arguments)


def _compared(
    function: str, left: pa.Array | pa.Scalar, right: pa.Array | pa.Scalar
) -> pa.Array | pa.Scalar:
    match function:
        case "equal":
            return _equal(left, right)
        case "not_equal":
            return pc.invert(_equal(left, right))
        case "less":
            return _less(left, right)
        case "greater":
            return _less(right, left)
        case "less_equal":
            return pc.invert(_less(right, left))
        case _:
            return pc.invert(_less(left, right))


def _equal(left: pa.Array | pa.Scalar, right: pa.Array | pa.Scalar) -> pa.Array | pa.Scalar:
    return pc.or_kleene(pc.equal(left, right), pc.and_kleene(_is_nan(left), _is_nan(right)))


def _less(left: pa.Array | pa.Scalar, right: pa.Array | pa.Scalar) -> pa.Array | pa.Scalar:
    beside = pc.and_kleene(pc.invert(_is_nan(left)), _is_nan(right))
    return pc.or_kleene(pc.less(left, right), beside)


def _is_nan(values: pa.Array | pa.Scalar) -> pa.Array | pa.Scalar:
    return pc.is_nan(values) if pa.types.is_floating(values.type) else pa.scalar(False)
