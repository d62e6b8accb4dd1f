"""Reading a version of a table: planned on the driver's side, read by tasks from the storage."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from lakebed import InvalidInput, SchemaMismatch
from lakebed.api.read_task import ChangeTask, ReadTask
from pyspark_lakebed.filters import where_of
from pyspark_lakebed.options import Options
from pyspark_lakebed.telling import told
from pyspark_lakebed.values import shown, struct_of

if TYPE_CHECKING:  # they pull in the whole API, which executors do not need
    from lakebed import Lake
    from lakebed.api.scan import Scan


@dataclass
class TablePartition(InputPartition):
    """All that an executor gets to know."""

    task: ReadTask | ChangeTask


def rows_in(partition: InputPartition | None, struct: StructType) -> Iterator[pa.RecordBatch]:
    """In an executor; where there is no partition Spark gives None for one."""
    if isinstance(partition, TablePartition):
        with told():
            for batch in partition.task.to_batches():
                yield shown(batch, struct)


def table_schema(options: Options) -> StructType:
    with options.open() as lake:
        return _schema_of(_scan(lake, options, options.text("where")))


def check_schema(wanted: StructType, given: StructType) -> None:
    """What Spark was told before must still be so."""
    if given.simpleString() != wanted.simpleString():
        raise SchemaMismatch(
            f"the table has the columns {wanted.simpleString()}, and Spark expects"
            f" {given.simpleString()}",
            hint="load the table again, and give no schema of your own",
        )


class TableReader(DataSourceReader):
    """Without a version every action reads the newest one."""

    def __init__(self, options: Options | None, struct: StructType) -> None:
        self._options = options
        self._struct = struct
        self._pushed: str | None = None

    @classmethod
    def open(cls, options: Options, struct: StructType) -> "TableReader":
        if options.flag("readChangeFeed"):
            raise InvalidInput(
                "the change feed is read by streams",
                hint="use spark.readStream, or table.changes(…) of lakebed",
            )
        if options.flag("pushFilters"):
            return PushingReader(options, struct)
        return TableReader(options, struct)

    @told()
    def partitions(self) -> Sequence[TablePartition]:
        assert self._options is not None, "planned on the driver's side"
        where = [text for text in (self._options.text("where"), self._pushed) if text]
        with self._options.open() as lake:
            scan = _scan(lake, self._options, " AND ".join(f"({t})" for t in where) or None)
            check_schema(_schema_of(scan), self._struct)
            return [TablePartition(task) for task in scan.tasks()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return rows_in(partition, self._struct)

    def __reduce__(self) -> tuple[object, ...]:
        # Executors do not learn where the database is.
        return TableReader, (None, self._struct)


class PushingReader(TableReader):
    """Spark refuses a reader that takes filters unless its setting for that is on."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        self._pushed = where_of(filters)
        return filters

    def __reduce__(self) -> tuple[object, ...]:
        return PushingReader, (None, self._struct)


def _scan(lake: "Lake", options: Options, where: str | None) -> "Scan":
    timestamp = options.text("timestamp")
    return lake.table(options.table).scan(
        columns=options.columns,
        where=where,
        version=options.number("version"),
        timestamp=int(timestamp) if timestamp and timestamp.isdecimal() else timestamp,
        ref=options.ref,
    )


def _schema_of(scan: "Scan") -> StructType:
    plan = scan.plan()
    by_name = {field.name: field for field in plan.schema.fields}
    chosen = tuple(by_name[name] for name in plan.columns)
    return struct_of(replace(plan.schema, fields=chosen, primary_key=()))
