"""Columns that rows have and a table lacks, as steps that add them; types that have to grow."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any, TypeGuard

import pyarrow as pa

from lakebed.api.alter import Step
from lakebed.api.engine_rows import EngineRows
from lakebed.engines.arrow.batches import Batches
from lakebed.engines.arrow.conform import find_name
from lakebed.engines.arrow.ingest import open_batches
from lakebed.engines.arrow.rows import ROWS_PER_BATCH
from lakebed.engines.arrow.types import fields_from_arrow, type_from_arrow
from lakebed.model.errors import SchemaMismatch, UnreadableInput
from lakebed.model.evolution import Place
from lakebed.model.ids import FieldId
from lakebed.model.schema import Schema
from lakebed.model.types import Field, StructType, Type, can_widen, children, is_scalar

Path = tuple[str, ...]


def merge_steps(rows: object, schema: Schema) -> tuple[list[Step], object]:
    """What the table needs to hold the rows, and the rows again.

    Python values have no exact type: of them only new columns and members are taken.
    """
    if isinstance(rows, EngineRows):
        return list(steps_between(schema.fields, fields_from_arrow(rows.arrow_schema))), rows
    if _is_items(rows):
        begun, everything = _begun(rows)
        if begun and isinstance(begun[0], Mapping):
            return list(_new_keys(begun, schema)), everything
        rows = everything
    batches = open_batches(rows, schema=schema)
    return list(steps_between(schema.fields, fields_from_arrow(batches.schema))), batches


def _is_items(rows: object) -> TypeGuard[Iterable[Any]]:
    plain = isinstance(rows, str | bytes | Mapping | Batches)
    return isinstance(rows, Iterable) and not plain and not hasattr(rows, "__arrow_c_stream__")


def _begun(rows: Iterable[Any]) -> tuple[list[Any], Iterator[Any]]:
    remaining = iter(rows)
    first = list(islice(remaining, ROWS_PER_BATCH))
    return first, chain(first, remaining)


def _new_keys(rows: list[Any], schema: Schema) -> Iterator[Step]:
    names = dict.fromkeys(key for row in rows if isinstance(row, Mapping) for key in row)
    for name in names:
        number = find_name(str(name), schema.fields)
        known = None if number is None else schema.fields[number]
        if known is not None and is_scalar(known.type):
            continue
        values = [row.get(name) for row in rows if isinstance(row, Mapping)]
        try:
            found = pa.array(values).type
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            if known is not None:
                continue  # the strict conversion says what is wrong with it
            raise UnreadableInput(
                f"the type of column {name!r} cannot be told from its values: {error}",
                hint="add the column to the table first",
                column=name,
            ) from None
        if known is None:
            yield _adding((str(name),), type_from_arrow(found, (str(name),)), None)
        elif not pa.types.is_null(found):
            inner = _known_only(found)
            if inner is not None:
                yield from _below((known.name,), known.type, inner, widen=False)


def _known_only(found: pa.DataType) -> Type | None:
    """The guessed type of a nested column; None where nothing is known of some member yet."""
    try:
        return type_from_arrow(found, ())
    except (SchemaMismatch, UnreadableInput):
        return None


def steps_between(
    have: tuple[Field, ...], given: tuple[Field, ...], *, widen: bool = True, above: Path = ()
) -> Iterator[Step]:
    """Steps that make a place for every given field."""
    for field in given:
        number = find_name(field.name, have)
        if number is None:
            yield _adding((*above, field.name), field.type, field.doc)
        else:
            known = have[number]
            yield from _below((*above, known.name), known.type, field.type, widen=widen)


def _below(path: Path, have: Type, given: Type, *, widen: bool) -> Iterator[Step]:
    if is_scalar(have):
        if widen and have != given and can_widen(have, given):
            yield lambda draft: draft.widen_column(path, given)
    elif isinstance(have, StructType) and isinstance(given, StructType):
        yield from steps_between(have.fields, given.fields, widen=widen, above=path)
    elif type(have) is type(given):
        for inner, other in zip(children(have), children(given), strict=True):
            if inner.name != "key":  # keys of maps do not change
                yield from _below((*path, inner.name), inner.type, other.type, widen=widen)


def _adding(path: Path, kind: Type, doc: str | None) -> Step:
    added = Field(FieldId(0), path[-1], kind, False, doc)
    return lambda draft: draft.add_column(path, added, None, Place())
