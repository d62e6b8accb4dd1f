"""Which rows of a few files are left, as one bitmap that Spark's generated code looks into: no
join, and no row of other files is asked."""

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from lakebed.engines.arrow.metadata import kept
from lakebed.engines.spark.predicate import named
from lakebed.model.files import LiveFile
from lakebed.model.vectors import Positions

Losing = Sequence[tuple[LiveFile, Positions]]
_WORD = 64
_MOST_FILES = 32  # sizes to compare a row's with, where a join would hash its file's name
_MOST_ROWS = 2**26  # 8 MiB, which every task gets
_WORDS = pa.list_(pa.field("element", pa.int64(), nullable=False))


def can_hold(files: Losing) -> bool:
    """Are they few enough, and is each told by its size?"""
    sizes = {live.file.size_bytes for live, _ in files}
    rows = sum(_rows(live, deleted) for live, deleted in files)
    return len(sizes) == len(files) <= _MOST_FILES and rows <= _MOST_ROWS


def left(
    session: SparkSession, rows: DataFrame, files: Losing, *, position: str, name: str, size: str
) -> DataFrame:
    """The rows that are left; columns tell their position, and the name and size of their file."""
    bits, cases, first = [], [], 0
    for live, deleted in files:
        cases.append(f"WHEN {live.file.size_bytes}L THEN {first}")
        count = _rows(live, deleted)
        bits.append(_bits(deleted, count))
        first += count // _WORD
    # A file of another size is not the one that was planned: no row of it is given.
    other = f"raise_error(concat('data file ', `{name}`, ' has another size than it should'))"
    begins = F.expr(f"CASE `{size}` {' '.join(cases)} ELSE CAST({other} AS INT) END")
    at = named(position)
    word = F.get(_words(session, b"".join(bits)), begins + F.shiftright(at, 6).cast("int"))
    bit = F.getbit(word, at.bitwiseAND(F.lit(_WORD - 1)).cast("int"))
    return rows.where(F.coalesce(bit == F.lit(1), F.lit(True)))


def _words(session: SparkSession, bits: bytes) -> Column:
    """A query of its own within the query: its plan shows no number, and needs no job."""
    count = len(bits) * 8 // _WORD
    words = pa.Array.from_buffers(pa.int64(), count, [None, pa.py_buffer(bits)])
    listed = pa.ListArray.from_arrays(pa.array([0, count], pa.int32()), words).cast(_WORDS)
    return session.createDataFrame(pa.table({"words": listed})).scalar()


def _rows(live: LiveFile, deleted: Positions) -> int:
    """Of whole words: none is shared by two files."""
    rows = max(live.file.record_count, deleted.last() + 1 if deleted else 0)
    return -(-rows // _WORD) * _WORD


def _bits(deleted: Positions, rows: int) -> bytes:
    there = kept(deleted, 0, rows)
    if there is None:
        return b"\xff" * (rows // 8)
    return bytes(there.buffers()[1])[: rows // 8]
