"""Where found rows are, as one small bitmap per file and task: what the driver gets to see."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame

from lakebed.engines.arrow.metadata import numbers_of
from lakebed.engines.spark.predicate import named
from lakebed.model.vectors import Positions

_FOUND = "file int, act int, rows long, bitmap binary"
_SCHEMA = pa.schema(
    [("file", pa.int32()), ("act", pa.int32()), ("rows", pa.int64()), ("bitmap", pa.binary())]
)


@dataclass(frozen=True, slots=True)
class Hits:
    """Rows of one file that one action is for; `rows` counts those found twice, too."""

    file: int  # its place in the plan
    act: int
    rows: int
    positions: Positions


def hits_in(frame: DataFrame, act: Column) -> list[Hits]:
    """Of a frame with the columns `_file` and `_pos`; `act` tells the action of a row."""
    narrow = frame.select(named("_file"), named("_pos"), act.cast("int").alias("act"))
    rows = narrow.mapInArrow(_bitmaps, _FOUND).collect()
    return [
        Hits(row["file"], row["act"], row["rows"], Positions.from_bytes(bytes(row["bitmap"])))
        for row in rows
    ]


def _bitmaps(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    found: dict[tuple[int, int], tuple[int, Positions]] = {}
    for batch in batches:
        table = pa.Table.from_batches([batch])
        for file, act in _pairs(table):
            mask = pc.and_(pc.equal(table["_file"], file), pc.equal(table["act"], act))
            of_file = table["_pos"].filter(mask).combine_chunks()
            rows, before = found.get((file, act), (0, Positions()))
            more = Positions(numbers_of(of_file))
            found[file, act] = (rows + len(of_file), before | more)
    listed = [(f, a, rows, p.to_bytes()) for (f, a), (rows, p) in found.items()]
    columns = [list(column) for column in zip(*listed, strict=True)] or [[], [], [], []]
    arrays = [pa.array(c, field.type) for c, field in zip(columns, _SCHEMA, strict=True)]
    yield pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA)


def _pairs(table: pa.Table) -> list[tuple[int, int]]:
    grouped = table.group_by(["_file", "act"]).aggregate([])
    return list(zip(grouped["_file"].to_pylist(), grouped["act"].to_pylist(), strict=True))
