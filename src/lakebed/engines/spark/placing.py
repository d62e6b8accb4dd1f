"""Partitioned files of Spark's own writer: it parts the rows by keys, in folders of its own; then
each file goes to the folder of its partition."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from lakebed.engines.arrow.exact import exact
from lakebed.engines.arrow.nested import plain
from lakebed.engines.arrow.partition import Values, partition_folder
from lakebed.engines.arrow.transform import transformed
from lakebed.engines.spark.arrow_out import Order
from lakebed.engines.spark.layout import partition_keys
from lakebed.model.errors import DataCorrupt
from lakebed.model.files import DataFile
from lakebed.model.partitioning import PartitionSpec
from lakebed.model.schema import Schema
from lakebed.model.transforms import Transform
from lakebed.model.types import INTEGERS, Primitive, Stored, Type
from lakebed.storage.base import Storage
from lakebed.storage.folders import sync_folder

_READERS = 8
_UTC = ("UTC", "Etc/UTC", "Z", "+00:00")
_TIMES = ("date", "timestamp", "timestamp_ntz")
_TEXT = Primitive("string")
_PLAIN = (*INTEGERS, "string", "boolean", *_TIMES)


def is_parted(session: SparkSession, spec: PartitionSpec, schema: Schema) -> bool:
    """Do Spark's keys part the rows as the transforms do? Of some they only bring rows together."""
    in_utc = session.conf.get("spark.sql.session.timeZone") in _UTC
    tops = {field.id: field.type for field in schema.fields}
    return all(
        f.source_id in tops and _is_exact(tops[f.source_id], f.transform, in_utc=in_utc)
        for f in spec.fields
    )


def _is_exact(kind: Type, transform: Transform, *, in_utc: bool) -> bool:
    if not isinstance(kind, Primitive) or kind.name not in _PLAIN:
        return False
    match transform.name:
        case "bucket":
            return kind.name in INTEGERS
        case "truncate":
            return kind.name in INTEGERS or kind.name == "string"
        case "identity":
            return in_utc or kind.name not in _TIMES
        case _:
            return in_utc


def file_keys(spec: PartitionSpec, schema: Schema) -> dict[str, Column]:
    """Texts that can name folders: of any length, and never empty, which Spark takes for NULL."""
    texts = [schema.field(field.source_id).type == _TEXT for field in spec.fields]
    keys = partition_keys(spec, schema).items()
    return {
        name: F.md5(column) if is_text else column.cast("string")
        for (name, column), is_text in zip(keys, texts, strict=True)
    }


@dataclass(frozen=True, slots=True)
class Placing:
    storage: Storage
    order: Order
    told: Callable[[str], DataFile | None]  # what the footer of a file says

    def files(self, within: str) -> list[DataFile]:
        root = f"{self.order.root}/{within}"
        paths = [s.path for s in self.storage.list(root) if _is_written(s.path, root)]
        with ThreadPoolExecutor(_READERS) as pool:
            found = list(pool.map(self._file, enumerate(paths)))
        self.storage.delete_folder(root)
        kept = [file for file in found if file is not None]
        for folder in {above for file in kept for above in _folders(file.path)}:
            sync_folder(self.storage.location(f"{self.order.root}/{folder}"))
        return kept

    def _file(self, numbered: tuple[int, str]) -> DataFile | None:
        number, path = numbered
        file = self.told(path)
        if file is None:
            return None
        order, values = self.order, self._partition(path)
        folder = partition_folder(order.spec, values, order.schema)
        placed = f"data/{folder}/{order.name_prefix}-{number:05d}.parquet"
        target = Path(self.storage.location(f"{order.root}/{placed}"))
        target.parent.mkdir(parents=True, exist_ok=True)
        Path(self.storage.location(path)).replace(target)
        return replace(file, path=placed, partition=values)

    def _partition(self, path: str) -> Values:
        """Told by the rows themselves, as of every other file."""
        schema, fields = self.order.schema, self.order.spec.fields
        sources = [schema.field(field.source_id) for field in fields]
        with self.storage.open_input(path) as source:
            rows = pq.read_table(source, columns=list({field.physical for field in sources}))
        values: list[Stored | None] = []
        for field, top in zip(fields, sources, strict=True):
            assert isinstance(top.type, Primitive)
            column = exact(plain(rows[top.physical].combine_chunks()), top.type)
            found = transformed(column, top.type, field.transform).unique()
            if len(found) != 1:
                raise DataCorrupt(
                    f"Spark wrote rows of {len(found)} partitions by {field.name} into one file",
                    hint="this is a defect; please report it",
                    path=path,
                )
            values.append(found[0].as_py())
        return tuple(values)


def _is_written(path: str, root: str) -> bool:
    """Not of an attempt that came too late and is still at work."""
    below = path.removeprefix(f"{root}/").split("/")
    return path.endswith(".parquet") and not any(part.startswith(("_temp", ".")) for part in below)


def _folders(path: str) -> list[str]:
    """Those above a file, from the first one on."""
    parts = path.split("/")[:-1]
    return ["/".join(parts[:length]) for length in range(1, len(parts) + 1)]
