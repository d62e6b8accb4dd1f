"""Expressions that stand for one value, such as a DEFAULT: the engine works them out."""

from lakebed.api.engine import open_engine
from lakebed.api.parts import Parts
from lakebed.api.sql.context import Values
from lakebed.model.errors import SqlUnsupported
from lakebed.sql.query import Expression


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
