"""From what a user gives for a new table to the change that creates it."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypedDict

import pyarrow as pa

from lakebed.api.constraints import parse_constraint
from lakebed.api.enforcing import refuse_unfit
from lakebed.api.engine import open_engine
from lakebed.api.engine_rows import EngineRows
from lakebed.api.options import check_names
from lakebed.api.parts import Parts
from lakebed.api.staging import Staged
from lakebed.core.state import first_state
from lakebed.engines.arrow.ingest import open_batches
from lakebed.engines.arrow.types import fields_from_arrow
from lakebed.model.changes import CreateTable
from lakebed.model.constraints import Constraint
from lakebed.model.errors import InvalidInput, InvalidSchema, StorageError
from lakebed.model.history import TableHead
from lakebed.model.ids import StateId, TableId, Version
from lakebed.model.names import TableName, is_text
from lakebed.model.partitioning import parse_sort_order, parse_spec
from lakebed.model.properties import check_properties
from lakebed.model.schema import Schema, new_schema
from lakebed.model.schema_text import parse_schema
from lakebed.model.settings import parse_formats
from lakebed.model.types import Field
from lakebed.rowops.workbench import Workbench
from lakebed.storage.claim import claim


class TableOptions(TypedDict, total=False):
    """Keyword arguments of create_table."""

    partition_by: Sequence[str]
    sort_by: Sequence[str]
    primary_key: Sequence[str]
    properties: Mapping[str, str] | None
    formats: str | Sequence[str] | None
    comment: str | None
    constraints: Mapping[str, str] | None


@dataclass(frozen=True, slots=True)
class NewTable:
    """The same, with what is left out."""

    partition_by: Sequence[str] = ()
    sort_by: Sequence[str] = ()
    primary_key: Sequence[str] = ()
    properties: Mapping[str, str] | None = None
    formats: str | Sequence[str] | None = None
    comment: str | None = None
    constraints: Mapping[str, str] | None = None


def shape_of(given: object) -> str:
    """What tells one schema from another; of data only what kind of thing it is."""
    return str(given) if isinstance(given, str | pa.Schema) else type(given).__name__


def stage_table(
    parts: Parts, name: TableName, given: object, new: NewTable
) -> tuple[Staged, object | None]:
    """The staged table, and the rows when data was given in place of a schema."""
    fields, rows = _fields(given)
    for argument in ("partition_by", "sort_by", "primary_key"):
        check_names(argument, getattr(new, argument))
    if new.comment is not None and not is_text(new.comment):
        raise InvalidInput("comment is not plain text", hint="comment='what the table holds'")
    schema = new_schema(fields, primary_key=tuple(new.primary_key))
    formats = parts.settings.value("publish.formats") if new.formats is None else new.formats
    identifier = str(uuid.uuid4())
    create = CreateTable(
        name=name,
        uuid=identifier,
        location="",
        schema=schema,
        spec=parse_spec(tuple(new.partition_by), schema),
        sort_order=parse_sort_order(tuple(new.sort_by), schema),
        properties=check_properties(new.properties or {}),
        formats=parse_formats(formats),
        comment=new.comment,
        constraints=_constraints(parts, new.constraints, schema),
    )
    first_state(create)  # refused before a folder is taken
    create = replace(create, location=_claimed(parts, name, identifier))
    return staged_new(create), rows


def staged_new(create: CreateTable) -> Staged:
    """A table that a commit will create."""
    return Staged(
        head=_unborn(create),
        base=None,
        state=first_state(create),
        create=create,
        live=[],
        operations=["create"],
    )


def _constraints(parts: Parts, given: object, schema: Schema) -> dict[str, Constraint]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InvalidInput(
            "constraints map names to conditions", hint="constraints={'positive': 'amount > 0'}"
        )
    found: dict[str, Constraint] = {}
    for name, text in given.items():
        added = parse_constraint(name, text, schema)
        if name.casefold() in map(str.casefold, found):
            raise InvalidSchema(
                f"two constraints are called {name!r}", hint="rename one of them", constraint=name
            )
        found |= added
    refuse_unfit(found, schema, Workbench(partial(open_engine, parts)))
    return found


def _claimed(parts: Parts, name: TableName, identifier: str) -> str:
    """A folder for the table alone: not another table's, and with nothing in it."""
    suffix = identifier.replace("-", "")
    for location in parts.catalog.free_locations(name, suffix):
        if claim(parts.storage, location, identifier):
            return location
    raise StorageError(
        f"no folder is free for table {name}", hint="look at what stands in the warehouse"
    )


def _fields(given: object) -> tuple[tuple[Field, ...], object | None]:
    if isinstance(given, str):
        return parse_schema(given), None
    if isinstance(given, pa.Schema):
        return fields_from_arrow(given), None
    if isinstance(given, tuple) and given and all(isinstance(f, Field) for f in given):
        return given, None
    if given is None:
        raise InvalidSchema("a table needs a schema", hint="give 'id long, name string' or data")
    if isinstance(given, EngineRows):
        return fields_from_arrow(given.arrow_schema), given
    batches = open_batches(given, schema=None)
    return fields_from_arrow(batches.schema), batches


def _unborn(create: CreateTable) -> TableHead:
    """A head with no id yet, for the parts that need a place to write to."""
    return TableHead(
        id=TableId(-1),
        uuid=create.uuid,
        name=create.name,
        location=create.location,
        write_mode="managed",
        created_ms=0,
        version=Version(-1),
        time_ms=0,
        state_id=StateId(-1),
        snapshot_id=None,
        last_sequence_number=0,
        next_file_id=0,
        next_row_id=0,
        live_files=0,
        live_rows=0,
        live_bytes=0,
    )
