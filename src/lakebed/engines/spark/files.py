"""What a scan needs to know of each file: its number, its lineage, and which rows are left."""

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from lakebed.engines.arrow.metadata import kept
from lakebed.engines.spark.predicate import named
from lakebed.model.files import LiveFile
from lakebed.model.vectors import Positions

NAME, NUMBER, FIRST_ROW_ID, SEQUENCE, THERE = "name", "number", "first_row_id", "sequence", "there"
_SCHEMA = pa.schema(
    [
        pa.field(NAME, pa.string()),
        pa.field(NUMBER, pa.int32()),
        pa.field(FIRST_ROW_ID, pa.int64()),
        pa.field(SEQUENCE, pa.int64()),
        pa.field(THERE, pa.list_(pa.int64())),
    ]
)


def file_name(live: LiveFile) -> str:
    return live.file.path.rpartition("/")[2]


def about_files(
    session: SparkSession, files: Sequence[tuple[int, LiveFile, Positions | None]]
) -> DataFrame:
    """One row per file: small, so that every executor gets all of it."""
    columns = [
        [file_name(live) for _, live, _ in files],
        [number for number, _, _ in files],
        [live.first_row_id for _, live, _ in files],
        [live.sequence_number for _, live, _ in files],
        [_words(deleted) for _, _, deleted in files],
    ]
    arrays = [pa.array(c, field.type) for c, field in zip(columns, _SCHEMA, strict=True)]
    return F.broadcast(session.createDataFrame(pa.Table.from_arrays(arrays, schema=_SCHEMA)))


def is_there(words: str, position: Column) -> Column:
    """Is the row at this position left? Rows behind the last word are."""
    word = F.get(named(words), F.shiftright(position, 6).cast("int"))
    bit = F.getbit(word, position.bitwiseAND(F.lit(63)).cast("int"))
    return F.coalesce(bit == F.lit(1), F.lit(True))


def _words(deleted: Positions | None) -> list[int] | None:
    """A bit for each row up to the last one that is gone, 64 to a word, the lowest first."""
    if not deleted:
        return None
    rows = (deleted.last() // 64 + 1) * 64
    there = kept(deleted, 0, rows)
    assert there is not None
    words = pa.Array.from_buffers(pa.int64(), rows // 64, [None, there.buffers()[1]])
    found: list[int] = words.to_pylist()
    return found
