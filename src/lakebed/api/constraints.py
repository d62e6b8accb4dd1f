"""CHECK constraints: conditions that no row may make FALSE; NULL passes, as in SQL."""

from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.engines.arrow.evaluate import matches
from lakebed.model.binding import bind
from lakebed.model.errors import ConstraintViolated, InvalidSchema
from lakebed.model.expressions import Predicate, columns
from lakebed.model.names import is_text
from lakebed.model.schema import Schema
from lakebed.model.types import walk
from lakebed.sql.predicate import parse_predicate

_LONGEST_NAME = 255
# Spark takes "a" for a text, a backslash for an escape, and two quotes for the end of two texts.
_OTHERWISE_IN_SPARK = ('"', "\\", "''")


def parse_constraint(name: object, text: object, schema: Schema) -> dict[str, str]:
    """The constraint as it is kept, if the schema can answer it."""
    if (
        not isinstance(name, str)
        or not is_text(name)
        or name != name.strip()
        or not 1 <= len(name) <= _LONGEST_NAME
    ):
        raise InvalidSchema(
            f"constraint name {name!r} is not plain text", hint="use a name such as amount_positive"
        )
    if not isinstance(text, str) or not columns(bind(parse_predicate(text), schema)):
        raise InvalidSchema(
            f"constraint {name!r} is no condition on a column: {text!r}",
            hint="write it as a WHERE clause: 'amount >= 0'",
            constraint=name,
        )
    if any(part in text for part in _OTHERWISE_IN_SPARK):
        raise InvalidSchema(
            f"constraint {name!r} has quotes or backslashes that Delta's engines read otherwise",
            hint="quote names with backticks, and leave ', \" and \\ out of texts",
            constraint=name,
        )
    return {name: text.strip()}


def columns_of(text: str, schema: Schema) -> frozenset[int]:
    """The ids of what a constraint looks at, and of all that lies around it."""
    bound = columns(bind(parse_predicate(text), schema))
    return frozenset(
        int(field.id)
        for column in bound
        if column.field_id is not None
        for field in schema.path_of(column.field_id)
    ) | frozenset(
        int(f.id)
        for column in bound
        if column.field_id is not None
        for f in walk((schema.field(column.field_id),))
    )


def bind_all(constraints: Mapping[str, str], schema: Schema) -> dict[str, Predicate]:
    return {name: bind(parse_predicate(text), schema) for name, text in constraints.items()}


def enforced(
    batches: Iterable[pa.RecordBatch], constraints: Mapping[str, Predicate]
) -> Iterator[pa.RecordBatch]:
    """The batches, each checked as it passes; the first row against a constraint stops them."""
    first_row = 0
    for batch in batches:
        for name, predicate in constraints.items():
            refuse_violations(name, predicate, batch, first_row)
        first_row += batch.num_rows
        yield batch


def refuse_violations(
    name: str, predicate: Predicate, batch: pa.RecordBatch, first_row: int | None
) -> None:
    """`first_row` counts among the rows written; None: the rows are in the table already."""
    index = pc.index(matches(predicate, batch), False).as_py()
    if index < 0:
        return
    row = None if first_row is None else first_row + index
    seen = sorted({column.path[0] for column in columns(predicate)})
    values = {n: batch.column(n)[index].as_py() for n in seen}
    raise ConstraintViolated(
        f"{'a row of the table' if row is None else f'row {row + 1}'} violates constraint {name!r}:"
        f" {_shown(values)}",
        hint="correct the row, or leave the constraint out",
        constraint=name,
        row=row,
    )


def _shown(values: Mapping[str, object]) -> str:
    text = ", ".join(f"{name} = {value!r}" for name, value in values.items())
    return text if len(text) <= 200 else text[:200] + "…"
