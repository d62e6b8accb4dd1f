"""What a scan needs to know of each file: its number, its lineage, and which rows are left."""

import re
from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from lakebed.engines.arrow.metadata import kept
from lakebed.model.files import LiveFile
from lakebed.model.vectors import Positions

NAME, NUMBER, FIRST_ROW_ID, SEQUENCE, THERE = "name", "number", "first_row_id", "sequence", "there"
COLUMNS = (NAME, NUMBER, FIRST_ROW_ID, SEQUENCE, THERE)
_MOST_CHOSEN = 32  # names to compare a row's with, where a join would hash it
_PLAIN = re.compile(r"[A-Za-z0-9_.=-]+")
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


def can_choose(files: Sequence[LiveFile]) -> bool:
    """Are they few, and have they names that stand in quotes as they are?"""
    return len(files) <= _MOST_CHOSEN and all(_PLAIN.fullmatch(file_name(f)) for f in files)


def chosen(files: Sequence[tuple[int, LiveFile]], key: str) -> dict[str, Column]:
    """What `about_files` tells, without a join: only rows that are kept are asked for it."""
    told = {
        NUMBER: [f"{number}" for number, _ in files],
        FIRST_ROW_ID: [_long(live.first_row_id) for _, live in files],
        SEQUENCE: [_long(live.sequence_number) for _, live in files],
    }
    names = [file_name(live) for _, live in files]
    return {about: _choice(key, names, values) for about, values in told.items()}


def _choice(key: str, names: Sequence[str], values: Sequence[str]) -> Column:
    if len(set(values)) == 1:
        return F.expr(values[0])
    cases = " ".join(f"WHEN '{n}' THEN {v}" for n, v in zip(names, values, strict=True))
    return F.expr(f"CASE `{key}` {cases} END")


def _long(number: int | None) -> str:
    return "CAST(NULL AS LONG)" if number is None else f"{number}L"


def is_there(words: Column, position: Column) -> Column:
    """Is the row at this position left? Rows behind the last word are."""
    word = F.get(words, F.shiftright(position, 6).cast("int"))
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
