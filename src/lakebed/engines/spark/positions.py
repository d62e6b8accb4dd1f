"""Where found rows are, as bitmaps that Spark itself makes: what the driver gets to see."""

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakebed.engines.arrow.metadata import numbers_of
from lakebed.engines.spark.predicate import named
from lakebed.model.vectors import Positions

_BITS = 32_768  # of one of Spark's bitmaps


@dataclass(frozen=True, slots=True)
class Hits:
    """Rows of one file that one action is for; `rows` counts those found twice, too."""

    file: int  # its place in the plan
    act: int
    rows: int
    positions: Positions


def hits_in(frame: DataFrame, act: Column) -> list[Hits]:
    """Of a frame with the columns `_file` and `_pos`; `act` tells the action of a row."""
    place = named("_pos") + 1  # Spark's bitmaps count from 1
    found = (
        frame.select(named("_file").alias("file"), act.cast("int").alias("act"), place.alias("at"))
        .groupBy("file", "act", F.bitmap_bucket_number("at").alias("bucket"))
        .agg(
            F.count("*").alias("rows"),
            F.bitmap_construct_agg(F.bitmap_bit_position("at")).alias("bits"),
        )
    )
    parts: dict[tuple[int, int], list[tuple[int, int, bytes]]] = {}
    for row in found.collect():
        part = (row["bucket"], row["rows"], bytes(row["bits"]))
        parts.setdefault((row["file"], row["act"]), []).append(part)
    return [
        Hits(file, number, sum(rows for _, rows, _ in listed), _positions(listed))
        for (file, number), listed in parts.items()
    ]


def _positions(parts: Iterable[tuple[int, int, bytes]]) -> Positions:
    found = Positions()
    for bucket, _, bits in parts:
        flags = pa.Array.from_buffers(pa.bool_(), len(bits) * 8, [None, pa.py_buffer(bits)])
        first = (bucket - 1) * _BITS
        numbers = pc.add(pc.indices_nonzero(flags).cast(pa.int64()), pa.scalar(first))
        found |= Positions(numbers_of(numbers))
    return found
