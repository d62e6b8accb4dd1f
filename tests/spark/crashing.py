"""A sink whose processes die once, as by kill -9, at the step that an option names."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StructType

from pyspark_lakebed import DefaultSource
from pyspark_lakebed.options import Options
from pyspark_lakebed.stream_writing import TableStreamWriter
from pyspark_lakebed.writing import Messages, TableWriter

STEPS = ("before_files", "after_files", "before_commit", "after_commit")


class CrashingSource(DefaultSource):
    """Registered under its own name; crashAt and note are options beside ours."""

    @classmethod
    def name(cls) -> str:
        return "crashing"

    def writer(self, schema: StructType, overwrite: bool) -> TableWriter:
        made = super().writer(schema, overwrite)
        made.__class__ = CrashingWriter
        return made

    def streamWriter(self, schema: StructType, overwrite: bool) -> TableStreamWriter:  # noqa: N802
        made = super().streamWriter(schema, overwrite)
        made.__class__ = CrashingStreamWriter
        return made


def crash(options: Options, step: str) -> None:
    note = Path(f"{options.text('note')}-{step}")
    if options.text("crashAt") == step and not note.exists():
        note.touch()
        os.kill(os.getpid(), signal.SIGKILL)


class CrashingWriter(TableWriter):
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        crash(self._options, "before_files")
        made = super().write(iterator)
        crash(self._options, "after_files")
        return made

    def commit(self, messages: Messages) -> None:
        crash(self._options, "before_commit")
        super().commit(messages)
        crash(self._options, "after_commit")


class CrashingStreamWriter(TableStreamWriter):
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        crash(self._options, "before_files")
        made = super().write(iterator)
        crash(self._options, "after_files")
        return made

    def commit(self, messages: Messages, batchId: int) -> None:  # noqa: N803 - Spark's name
        crash(self._options, "before_commit")
        super().commit(messages, batchId)
        crash(self._options, "after_commit")
