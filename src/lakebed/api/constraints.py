"""CHECK constraints: conditions that no row may make FALSE; NULL passes, as in SQL."""

from collections.abc import Iterator

from lakebed.model.binding import bind
from lakebed.model.constraints import Constraint
from lakebed.model.errors import InvalidExpression, InvalidSchema
from lakebed.model.expressions import Column, IsNull, Predicate, columns
from lakebed.model.ids import FieldId
from lakebed.model.names import is_text
from lakebed.model.schema import Schema
from lakebed.model.types import walk
from lakebed.sql.predicate import parse_predicate
from lakebed.sql.row_condition import parse_row_condition
from lakebed.sql.spark import to_spark

_LONGEST_NAME = 255
# Spark takes "a" for a text, a backslash for an escape, and two quotes for the end of two texts.
_OTHERWISE_IN_SPARK = ('"', "\\", "''", "--", "/*")


def parse_constraint(name: object, text: object, schema: Schema) -> dict[str, Constraint]:
    """The constraint as it is kept, if the schema has the columns it looks at."""
    if (
        not isinstance(name, str)
        or not is_text(name)
        or name != name.strip()
        or not 1 <= len(name) <= _LONGEST_NAME
    ):
        raise InvalidSchema(
            f"constraint name {name!r} is not plain text", hint="use a name such as amount_positive"
        )
    if not isinstance(text, str) or not list(_columns(text, schema)):
        raise InvalidSchema(
            f"constraint {name!r} is no condition on a column: {text!r}",
            hint="write it as a WHERE clause: 'amount >= 0'",
            constraint=name,
        )
    if simple_predicate(text) is not None and not any(part in text for part in _OTHERWISE_IN_SPARK):
        return {name: Constraint(text.strip(), text.strip())}
    sql = parse_row_condition(text).sql
    return {name: Constraint(sql, to_spark(sql, schema))}


def columns_of(constraint: Constraint, schema: Schema) -> frozenset[int]:
    """The ids of what a constraint looks at, and of all that lies around it."""
    found = set[int]()
    for field_id in _columns(constraint.sql, schema):
        found |= {int(field.id) for field in schema.path_of(field_id)}
        found |= {int(field.id) for field in walk((schema.field(field_id),))}
    return frozenset(found)


def simple_predicate(text: str) -> Predicate | None:
    """A constraint as an unbound predicate; None when only the SQL engine can answer it."""
    try:
        return parse_predicate(text)
    except InvalidExpression:
        return None


def _columns(text: str, schema: Schema) -> Iterator[FieldId]:
    """Refuses names that are no columns."""
    simple = simple_predicate(text)
    if simple is not None:
        bound = columns(bind(simple, schema))
    else:
        paths = parse_row_condition(text).columns
        bound = {c for path in paths for c in columns(bind(IsNull(Column(path)), schema))}
    for column in bound:
        if column.field_id is not None:
            yield column.field_id
