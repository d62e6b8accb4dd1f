"""PyIceberg's table of the same files, committed by itself with a catalog in SQLite.

Nothing is removed from it: it writes no deletion vectors, and would write every manifest anew.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from benchmarks.measure import Call, Case, Fact
from benchmarks.measures.plan_files import PER_DAY, ROWS, Shape, choose

if TYPE_CHECKING:
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table
    from pyiceberg.types import PrimitiveType

_TOGETHER = 10_000  # files of a commit, and of its manifest: few large ones are read fastest


class PyIcebergPlan:
    environment = "peers"
    owner = "pyiceberg"

    def make(self, folder: Path, case: Case, data: Path) -> None:
        from pyiceberg.partitioning import PartitionField, PartitionSpec
        from pyiceberg.schema import Schema
        from pyiceberg.transforms import DayTransform
        from pyiceberg.types import LongType, NestedField, StringType, TimestampType

        kinds = (LongType(), LongType(), StringType(), TimestampType())
        schema = Schema(
            *(
                NestedField(number, name, kind, required=False)
                for number, (name, kind) in enumerate(zip("abcd", kinds, strict=True), 1)
            )
        )
        spec = PartitionSpec(PartitionField(4, 1000, DayTransform(), "d_day"))
        catalog = _catalog(folder)
        catalog.create_namespace("bench")
        table = catalog.create_table("bench.t", schema, partition_spec=spec)
        shape = Shape(case.sizes["files"])
        for first in range(0, shape.files, _TOGETHER):
            with (
                table.transaction() as transaction,
                transaction.update_snapshot().fast_append() as append,
            ):
                for n in range(first, min(first + _TOGETHER, shape.files)):
                    append.append_data_file(_file(table, shape, n))

    def open(self, folder: Path, case: Case, data: Path) -> Call:
        table, shape = _catalog(folder).load_table("bench.t"), Shape(case.sizes["files"])
        (n,) = choose(shape, 1)

        def plan() -> list[str]:
            return [t.file.file_path for t in table.scan(_condition(shape, case, n)).plan_files()]

        def facts(answer: object) -> dict[str, Fact]:
            assert isinstance(answer, list)
            found = {path.partition("/bench/t/")[2] for path in answer}
            right = found >= set(shape.expected(case.text, n)) and len(found) <= PER_DAY
            return {"right": int(right), "plans": 1}

        return Call(plan, facts)


def _condition(shape: Shape, case: Case, n: int) -> str:
    """Its expressions know no TIMESTAMP before a text."""
    return re.sub(r"TIMESTAMP '([^']*)'", r"'\1T00:00:00'", shape.condition(case.text, n))


def _catalog(folder: Path) -> "SqlCatalog":
    from pyiceberg.catalog.sql import SqlCatalog

    return SqlCatalog(
        "bench", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/warehouse"
    )


def _file(table: "Table", shape: Shape, n: int) -> "DataFile":
    from pyiceberg.conversions import to_bytes
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
    from pyiceberg.typedef import Record

    known = shape.known(n)
    kinds = [cast("PrimitiveType", field.field_type) for field in table.schema().fields]
    bounds: Sequence[tuple[int | str, int | str]] = (known.a, known.b, known.c, known.d)
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=f"{table.location()}/{known.path}",
        file_format=FileFormat.PARQUET,
        partition=Record(known.day),
        record_count=ROWS,
        file_size_in_bytes=10_000,
        column_sizes=dict.fromkeys(range(1, 5), 800),
        value_counts=dict.fromkeys(range(1, 5), ROWS),
        null_value_counts=dict.fromkeys(range(1, 5), 0),
        nan_value_counts={},
        lower_bounds={i: to_bytes(kinds[i - 1], b[0]) for i, b in enumerate(bounds, 1)},
        upper_bounds={i: to_bytes(kinds[i - 1], b[1]) for i, b in enumerate(bounds, 1)},
        key_metadata=None,
        split_offsets=[4],
        equality_ids=None,
        sort_order_id=None,
        spec_id=table.spec().spec_id,
    )
