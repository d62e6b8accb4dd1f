"""Files that Polars reads by itself: those that hold the columns as they are now, or narrower.

All others are left to the Arrow reader, which knows every way a schema can have changed.
"""

from collections.abc import Iterable, Iterator, Sequence

import polars as pl
import pyarrow as pa

from lakebed.core.plan import Plan
from lakebed.engines.arrow.metadata import kept
from lakebed.engines.arrow.types import to_arrow
from lakebed.model.ids import FieldId, SchemaId
from lakebed.model.schema import Schema
from lakebed.model.types import Field, can_widen, is_scalar, walk
from lakebed.storage.base import Storage

_POSITION = "_pos"  # no column of a table has this name
_WIDER = pl.ScanCastOptions(
    integer_cast="upcast", float_cast="upcast", extra_struct_fields="ignore"
)


def native_files(plan: Plan, storage: Storage, fields: Sequence[Field]) -> list[bool]:
    """For each file: does Polars read these columns as the Arrow reader does?"""
    # Polars sees files only, and rows without columns not at all.
    if not fields or not storage.root_uri.startswith("file:") or not all(map(_is_plain, fields)):
        return [False] * len(plan.files)
    needed = {leaf for field in fields for leaf in _needed(field)}
    return [needed <= live.file.stats.keys() for live in plan.files]


def native_frames(
    plan: Plan,
    storage: Storage,
    fields: Sequence[Field],
    condition: pl.Expr | None,
    most: int | None,
) -> Iterator[pl.DataFrame]:
    """Rows where the condition is TRUE, in order; `fields` are all that are looked at."""
    there = _still_there(plan)
    # Rows that no condition leaves out stand one after the other, and need no numbers.
    numbered = there is not None and condition is not None
    rows = pl.scan_parquet(
        [storage.location(f"{plan.root}/{live.file.path}") for live in plan.files],
        glob=False,
        hive_partitioning=False,
        schema=_physical_schema(fields),
        missing_columns="insert",
        extra_columns="ignore",
        cast_options=_WIDER,
        row_index_name=_POSITION if numbered else None,
    )
    position = [pl.col(_POSITION)] if numbered else []
    rows = rows.select([pl.col(f.physical).alias(f.name) for f in fields] + position)
    if condition is not None:
        rows = rows.filter(condition)
    rows = rows.select([pl.col(name) for name in plan.columns] + position)
    if most is not None:
        rows = rows.head(most + sum(map(len, plan.deleted.values())))
    frames = rows.collect_batches(lazy=True)
    return iter(frames) if there is None else _left(frames, there)


def _left(frames: Iterable[pl.DataFrame], there: pl.Series) -> Iterator[pl.DataFrame]:
    """The rows that are still there."""
    first = 0
    for frame in frames:
        if _POSITION in frame.columns:
            yield frame.filter(there.gather(frame[_POSITION])).drop(_POSITION)
        else:
            yield frame.filter(there.slice(first, frame.height))
            first += frame.height


def frame_schema(fields: Sequence[Field]) -> pl.Schema:
    """The columns as Polars has them."""
    empty = to_arrow(Schema(SchemaId(0), tuple(fields))).empty_table()
    return pl.DataFrame(empty).schema


def _physical_schema(fields: Sequence[Field]) -> dict[str, pl.DataType]:
    kinds = frame_schema(fields)
    return {field.physical: kinds[field.name] for field in fields}


def _is_plain(field: Field) -> bool:
    """The names below it are those of the files, and Polars may widen it."""
    _, *below = walk((field,))
    if any(f.physical != f.name or f.widened for f in below):
        return False
    return all(not w.path and can_widen(w.before, w.after) for w in field.widened)


def _needed(field: Field) -> list[FieldId]:
    """What a file must hold: Polars takes what it lacks for NULL, which only some columns are."""
    if is_scalar(field.type) and not field.required and field.initial_default is None:
        return []
    return [f.id for f in walk((field,)) if is_scalar(f.type)]


def _still_there(plan: Plan) -> pl.Series | None:
    """Of all rows of the files, one after the other: is it still there?"""
    if not plan.deleted:
        return None
    parts = []
    for live in plan.files:
        there = kept(plan.deleted.get(live.id), 0, live.file.record_count)
        parts.append(pa.repeat(True, live.file.record_count) if there is None else there)
    return pl.Series(pa.chunked_array(parts)).rechunk()
