"""Writing a stream: every micro-batch is one commit, made once however often it is tried."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from lakebed import CommitConflict, InvalidInput, TableExists
from lakebed.api.write_task import WriteTask, Written
from lakebed.engines.spark.types import from_spark
from pyspark_lakebed.options import Options
from pyspark_lakebed.telling import told
from pyspark_lakebed.values import taken
from pyspark_lakebed.writing import Messages, WrittenMessage, checked_task, written_in

if TYPE_CHECKING:  # it pulls in the whole API, which executors do not need
    from lakebed import Lake


class TableStreamWriter(DataSourceStreamArrowWriter):
    """Made anew for every batch, and again for its commit."""

    def __init__(self, options: Options, task: WriteTask, *, overwrite: bool) -> None:
        self._options = options
        self._task = task
        self._overwrite = overwrite  # output mode complete
        self._upsert = options.text("mode") == "upsert"

    @classmethod
    def open(cls, options: Options, struct: StructType, *, overwrite: bool) -> "TableStreamWriter":
        _check(options, overwrite=overwrite)
        with options.open() as lake:
            if not lake.has_table(options.table):
                _create(lake, options, struct)
            task = checked_task(lake.write_task(options.table), struct)
        writer = TableStreamWriter(options, task, overwrite=overwrite)
        writer.refuse_keyless()
        return writer

    def refuse_keyless(self) -> None:
        """Before any row is computed."""
        if self._upsert and not (self._options.names("key") or self._task.schema.primary_key):
            raise InvalidInput(
                f"table {self._options.table} has no primary key, and the stream names no key",
                hint='.option("key", "id")',
            )

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        with told():
            rows = taken(iterator, self._task.schema)
            written = self._task.spool(rows) if self._upsert else self._task.write(rows)
            return WrittenMessage(written)

    @told()
    def commit(self, messages: Messages, batchId: int) -> None:  # noqa: N803 - Spark's name
        written = written_in(messages)
        with self._options.open() as lake:
            if self._is_done(lake, batchId):
                lake.discard_written(self._task, written)
            elif self._upsert:
                self._merge(lake, written, batchId)
            elif self._overwrite or any(each.files for each in written):
                lake.commit_written(
                    self._task, written, overwrite=self._overwrite, txn=self._txn(batchId)
                )

    @told()
    def abort(self, messages: Messages, batchId: int) -> None:  # noqa: ARG002, N803
        """Also after a commit that failed, or seemed to: what it shows stays."""
        with self._options.open() as lake:
            lake.discard_written(self._task, written_in(messages))

    def _is_done(self, lake: "Lake", batch: int) -> bool:
        """Was the batch committed before Spark could note that it was?"""
        table = self._options.table
        last = lake.table(table).last_txn(self._options.application)
        if last is not None and batch < last:
            raise CommitConflict(
                f"batch {batch} comes after batch {last} of the same stream was written to {table}",
                hint="the checkpoint was set back: use a new checkpointLocation, or another"
                " txnAppId",
                table=table,
            )
        return batch == last

    def _merge(self, lake: "Lake", written: list[Written], batch: int) -> None:
        if any(each.files for each in written):
            rows = self._task.spooled(written)
            source = pa.RecordBatchReader.from_batches(rows.arrow_schema, rows.to_batches())
            table = lake.table(self._options.table)
            table.upsert(source, key=self._options.names("key"), txn=self._txn(batch))
        lake.discard_written(self._task, written)

    def _txn(self, batch: int) -> tuple[str, int]:
        return self._options.application, batch


def _create(lake: "Lake", options: Options, struct: StructType) -> None:
    try:
        lake.create_table(options.table, from_spark(struct), **options.new_table)
    except TableExists:
        return  # somebody was faster


def _check(options: Options, *, overwrite: bool) -> None:
    _ = options.application  # refused before anything is done
    mode = options.text("mode") or "append"
    if mode not in ("append", "upsert"):
        raise InvalidInput(f"option mode is {mode!r}", hint="use append or upsert")
    if mode == "append" and options.text("key") is not None:
        raise InvalidInput("an append has no key", hint='.option("mode", "upsert")')
    if mode == "upsert" and overwrite:
        raise InvalidInput(
            "a stream cannot replace all rows and upsert them",
            hint='.outputMode("append"), or leave out the option mode',
        )
    if "@" in options.table or options.ref is not None:
        raise InvalidInput(
            "a stream is written to main: branches do not know which batches they have",
            hint="name the table alone",
        )
