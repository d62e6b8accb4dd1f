"""Reading a table as a stream: offsets are versions, micro-batches what lies between them."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from lakebed import InvalidInput
from lakebed.api.offset import Offset, Plain
from pyspark_lakebed.options import Options
from pyspark_lakebed.reading import TablePartition, check_schema, rows_in
from pyspark_lakebed.telling import told
from pyspark_lakebed.values import struct_of

if TYPE_CHECKING:  # they pull in the whole API, which executors do not need
    from lakebed import Lake
    from lakebed.api.following import Following

_ABOUT = (
    StructField("_op", StringType()),
    StructField("_version", LongType()),
    StructField("_time", TimestampType()),
)


def stream_schema(options: Options) -> StructType:
    with options.open() as lake:
        return _struct(_following(lake, options), options)


class TableStreamReader(DataSourceStreamReader):
    """Lives as long as the query, in one process on the driver's side."""

    def __init__(self, options: Options | None, struct: StructType) -> None:
        self._options = options
        self._struct = struct
        self._lake: Lake | None = None
        self._followed: Following | None = None
        self._first: Offset | None = None
        self._position: Offset | None = None  # the end of what was planned last

    @told()
    def initialOffset(self) -> Plain:  # noqa: N802 - Spark's name
        return self._begin().to_plain()

    @told()
    def latestOffset(self) -> Plain:  # noqa: N802 - Spark's name
        # A query that goes on from a checkpoint asks for partitions first.
        return self._following.next(self._position or self._begin()).to_plain()

    @told()
    def partitions(self, start: Plain, end: Plain) -> Sequence[TablePartition]:
        self._position = Offset.from_plain(end)
        tasks = self._following.tasks(Offset.from_plain(start), self._position)
        return [TablePartition(task) for task in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return rows_in(partition, self._struct)

    def commit(self, end: Plain) -> None:
        self._position = Offset.from_plain(end)

    def stop(self) -> None:
        if self._lake is not None:
            self._lake.close()

    def __reduce__(self) -> tuple[object, ...]:
        # Executors do not learn where the database is.
        return TableStreamReader, (None, self._struct)

    def _begin(self) -> Offset:
        if self._first is None:
            self._first = self._following.first()
        return self._first

    @property
    def _following(self) -> "Following":
        if self._followed is None:
            assert self._options is not None, "planned on the driver's side"
            self._lake = self._options.opened()
            self._followed = _following(self._lake, self._options)
            check_schema(_struct(self._followed, self._options), self._struct)
        return self._followed


def _following(lake: "Lake", options: Options) -> "Following":
    for name in ("version", "timestamp"):
        if options.text(name) is not None:
            raise InvalidInput(
                f"a stream has no single {name}",
                hint="startingVersion and startingTimestamp say where it begins",
            )
    table, ref = options.table, options.ref
    started = options.text("startingTimestamp")
    return lake.table(f"{table}@{ref}" if ref else table).follow(
        starting_version=options.starting_version,
        starting_timestamp=int(started) if started and started.isdecimal() else started,
        change_feed=options.flag("readChangeFeed"),
        on_change=options.on_change,
        max_versions=options.number("maxVersionsPerTrigger"),
        max_files=options.number("maxFilesPerTrigger"),
        columns=options.columns,
        where=options.text("where"),
    )


def _struct(following: "Following", options: Options) -> StructType:
    about = _ABOUT if options.flag("readChangeFeed") else ()
    return StructType([*struct_of(following.schema).fields, *about])
