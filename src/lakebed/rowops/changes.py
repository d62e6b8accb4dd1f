"""Change streams: rows with an operation in a column, each the newest word about its key."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.engines.arrow.batches import Batches
from lakebed.engines.arrow.conform import conform, find_name, unknown_name
from lakebed.engines.arrow.types import to_arrow
from lakebed.model.errors import InvalidInput, SchemaMismatch
from lakebed.model.ids import FieldId
from lakebed.model.quoting import quoted
from lakebed.model.schema import Schema
from lakebed.model.types import Field, Primitive
from lakebed.rowops.clause import Aliases, Clause, When

_OPERATIONS = {"I": "INSERT", "U": "UPDATE", "D": "DELETE"}
_CODES = {name: code for code, long in _OPERATIONS.items() for name in (code, long)}
ALIASES = Aliases("t", "s")


def typed_changes(given: Batches, schema: Schema, key: Sequence[str], op: str) -> Batches:
    """The rows as the table's types; operations become I, U or D.

    What only a deletion may leave open is checked when the rows that stay are written.
    """
    if find_name(op, schema.fields) is not None:
        raise InvalidInput(
            f"{op!r} is a column of the table", hint="give another op_column", column=op
        )
    names = [name for name in given.schema.names if name.casefold() != op.casefold()]
    if len(names) == len(given.schema.names):
        raise SchemaMismatch(
            f"the rows have no column {op!r}", hint="it says INSERT, UPDATE or DELETE", column=op
        )
    fields = [_field(schema, name, key) for name in names]
    absent = [name for name in key if name not in {f.name for f in fields}]
    if absent:
        raise SchemaMismatch(
            f"key column {absent[0]!r} is missing", hint="every row names its key", column=absent[0]
        )
    shape = replace(schema, fields=(operation_field(op), *fields), primary_key=())
    return Batches(to_arrow(shape), _coded(conform(given, shape), op))


def refuse_left_out(
    number: int, row: Mapping[str, object], missing: Sequence[str], *, key: Sequence[str], op: str
) -> None:
    """An UPDATE that says nothing of a column would make it NULL, because other rows have it.

    A deletion needs its key alone, and what an INSERT leaves out gets its default, or NULL.
    """
    said = next((row[name] for name in row if str(name).casefold() == op.casefold()), None)
    updates = isinstance(said, str) and _CODES.get(said.strip().upper()) == "U"
    refused = [name for name in missing if updates or name in key]
    if refused:
        refuse_uneven(number, row, refused)


def refuse_uneven(number: int, _: Mapping[str, object], missing: Sequence[str]) -> None:
    """A row that takes another's place says something of every column."""
    raise SchemaMismatch(
        f"row {number + 1} has no {missing[0]!r}, which other rows have",
        hint="give every row the same columns, or apply the rows in several calls",
        column=missing[0],
        row=number,
    )


def operation_field(op: str) -> Field:
    return Field(FieldId(0), op, Primitive("string"), physical=op)


def _field(schema: Schema, name: str, key: Sequence[str]) -> Field:
    number = find_name(name, schema.fields)
    if number is None:
        raise unknown_name(name, schema.fields)
    field = schema.fields[number]
    return replace(field, required=field.name in key, write_default=None)


def _coded(batches: Iterable[pa.RecordBatch], op: str) -> Iterator[pa.RecordBatch]:
    first_row = 0
    names = pa.array(list(_CODES))
    codes = pa.array(list(_CODES.values()))
    for batch in batches:
        given = batch.column(0)
        found = pc.index_in(pc.utf8_upper(pc.utf8_trim_whitespace(given)), names)
        if found.null_count:
            index = pc.index(found.is_null(), True).as_py()
            raise SchemaMismatch(
                f"column {op!r}, row {first_row + index + 1}: {given[index].as_py()!r} is no"
                " operation",
                hint="use INSERT, UPDATE or DELETE (or I, U, D)",
                column=op,
                row=first_row + index,
            )
        first_row += batch.num_rows
        coded = [codes.take(found), *batch.columns[1:]]
        yield pa.RecordBatch.from_arrays(coded, schema=batch.schema)


def on_keys(key: Sequence[str], aliases: Aliases = ALIASES) -> str:
    t, s = quoted(aliases.target), quoted(aliases.source)
    return " AND ".join(f"{t}.{quoted(name)} = {s}.{quoted(name)}" for name in key)


def clauses_for(names: Sequence[str], op: str) -> tuple[Clause, ...]:
    """A deletion deletes; any other operation makes the row what it says, there before or not.

    An INSERT gives the whole row, so that nothing is left of one that was there.
    """
    s = quoted(ALIASES.source)
    gone, whole = (f"{s}.{quoted(op)} = '{code}'" for code in "DI")
    values = {name: f"{s}.{quoted(name)}" for name in names if name != op}
    return (
        Clause(When.MATCHED, "delete", gone),
        Clause(When.MATCHED, "replace", whole, values),
        Clause(When.MATCHED, "update", None, values),
        Clause(When.NOT_MATCHED, "insert", f"NOT ({gone})", values),
    )
