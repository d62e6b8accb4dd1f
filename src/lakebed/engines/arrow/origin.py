"""One file that rows are read from, by its name; every failure to read it names it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from lakebed.model.errors import UnreadableInput


@dataclass(frozen=True, slots=True)
class Origin:
    """`path` is None for standard input, which can be read only once."""

    name: str
    path: Path | None
    stdin: BinaryIO | None = None
    codec: str | None = None

    @property
    def can_reopen(self) -> bool:
        return self.path is not None

    def open(self) -> pa.NativeFile:
        with self.failures():
            raw = pa.OSFile(str(self.path)) if self.path else pa.PythonFile(self.stdin, mode="r")
            return raw if self.codec is None else pa.CompressedInputStream(raw, self.codec)

    def open_seekable(self) -> pa.NativeFile:
        """For formats whose directory stands at the end; all of standard input is read first."""
        if self.codec is not None:
            raise self.error("this format cannot be read from inside a compressed file")
        if self.stdin is None:
            return self.open()
        with self.failures():
            return pa.BufferReader(self.stdin.read())

    def error(self, reason: str) -> UnreadableInput:
        return UnreadableInput(
            f"{self.name}: {reason}",
            hint="check that the file is whole and of the format meant; nothing was written",
            file=self.name,
        )

    @contextmanager
    def failures(self) -> Iterator[None]:
        try:
            yield
        except (pa.ArrowException, OSError, EOFError, UnicodeDecodeError) as error:
            raise self.error(f"it cannot be read: {str(error).strip()}") from error

    def guarded(self, batches: Callable[[], Iterator[pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
        """The batches, with every failure to read another one naming this file."""
        with self.failures():
            remaining = batches()
        while True:
            with self.failures():
                batch = next(remaining, None)
            if batch is None:
                return
            yield batch
