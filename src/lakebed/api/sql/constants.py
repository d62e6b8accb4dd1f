"""Expressions that stand for one value, such as a DEFAULT: the engine works them out."""

from decimal import Decimal

from lakebed.api.engine import open_engine
from lakebed.api.parts import Parts
from lakebed.api.sql.context import Values
from lakebed.model.errors import SqlUnsupported
from lakebed.model.types import Primitive, Type
from lakebed.sql.query import Expression

_FLOATS = (Primitive("float"), Primitive("double"))


def default_of(parts: Parts, expression: Expression, kind: Type | None, values: Values) -> object:
    """A literal such as 1.5 is a decimal for the engine, and the nearest float for a column."""
    value = constant(parts, expression, values)
    return float(value) if isinstance(value, Decimal) and kind in _FLOATS else value


def constant(parts: Parts, expression: Expression, values: Values) -> object:
    if expression.tables:
        raise SqlUnsupported(
            "a query cannot stand here", hint="write a value, or an expression of values"
        )
    given = {name: values[name] for name in expression.parameters}
    with open_engine(parts) as engine:
        rows = engine.batches(f"SELECT ({expression.sql}) AS value", given).read_all()
    value: object = rows.column(0)[0].as_py()
    return value
