"""Writing a DataFrame: tasks write data files, and one commit on the driver's side shows them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from lakebed import InvalidInput
from lakebed.api.write_task import WriteTask, Written
from lakebed.engines.spark.types import from_spark
from pyspark_lakebed.options import Options
from pyspark_lakebed.telling import told
from pyspark_lakebed.values import taken

if TYPE_CHECKING:  # it pulls in the whole API, which executors do not need
    from lakebed import Lake


@dataclass
class WrittenMessage(WriterCommitMessage):
    written: Written


Messages = Sequence[WriterCommitMessage | None]


def written_in(messages: Messages) -> list[Written]:
    return [message.written for message in messages if isinstance(message, WrittenMessage)]


def checked_task(task: WriteTask, struct: StructType) -> WriteTask:
    """Refuse rows that cannot fit before Spark computes any."""
    shape = from_spark(struct)
    (empty,) = taken([pa.RecordBatch.from_pylist([], schema=shape)], task.schema)
    task.check(empty.schema)
    return task


class TableWriter(DataSourceArrowWriter):
    """Pickled to the tasks, and to the process that commits."""

    def __init__(self, options: Options, task: WriteTask, *, overwrite: bool) -> None:
        self._options = options
        self._task = task
        self._overwrite = overwrite

    @classmethod
    def open(cls, options: Options, struct: StructType, *, overwrite: bool) -> "TableWriter":
        _check(options, overwrite=overwrite)
        with options.open() as lake:
            task = lake.write_task(
                options.table,
                from_spark(struct),
                where=options.text("replaceWhere"),
                **options.new_table,
            )
            return TableWriter(options, checked_task(task, struct), overwrite=overwrite)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        with told():
            return WrittenMessage(self._task.write(taken(iterator, self._task.schema)))

    @told()
    def commit(self, messages: Messages) -> None:
        with self._options.open() as lake:
            self._commit(lake, written_in(messages))

    @told()
    def abort(self, messages: Messages) -> None:
        """Also after a commit that failed, or seemed to: what it shows stays."""
        with self._options.open() as lake:
            lake.discard_written(self._task, written_in(messages))

    def _commit(self, lake: "Lake", written: list[Written]) -> None:
        options = self._options
        lake.commit_written(
            self._task,
            written,
            overwrite=self._overwrite,
            where=options.text("replaceWhere"),
            partitions=_is_dynamic(options),
            txn=options.txn,
            message=options.text("message"),
        )


def _is_dynamic(options: Options) -> bool:
    return (options.text("partitionOverwriteMode") or "static").lower() == "dynamic"


def _check(options: Options, *, overwrite: bool) -> None:
    _ = options.txn  # refused before anything is done
    if options.text("mode") is not None or options.text("key") is not None:
        raise InvalidInput(
            "the options mode and key are those of a stream",
            hint='.mode("append") or .mode("overwrite"); lake.spark().merge(…) for upserts',
        )
    if not overwrite and (options.text("replaceWhere") or _is_dynamic(options)):
        raise InvalidInput(
            "an append replaces nothing",
            hint='.mode("overwrite") belongs to replaceWhere and partitionOverwriteMode',
        )
