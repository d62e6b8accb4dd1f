"""Plans over files that tests write, for sessions."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from lakebed.core.plan import Plan
from lakebed.engines.arrow.read import read, read_schema
from lakebed.engines.arrow.types import to_arrow
from lakebed.engines.arrow.write import WriteOptions, write
from lakebed.engines.duckdb.instance import Limits
from lakebed.engines.duckdb.session import Session
from lakebed.model.files import DataFile, LiveFile
from lakebed.model.ids import FileId, SnapshotId, Version
from lakebed.model.schema import Schema, new_schema
from lakebed.model.schema_text import parse_schema
from lakebed.model.vectors import Positions
from lakebed.storage.base import Storage
from lakebed.storage.local import LocalStorage

LIMITS = Limits(1 << 30, None)


class Written:
    """A table's folder that grows file by file."""

    def __init__(self, storage: Storage, text: str) -> None:
        self.storage = storage
        self.schema = new_schema(parse_schema(text))
        self.files: list[DataFile] = []

    def add(self, rows: pa.Table | Sequence[Mapping[str, Any]], **options: Any) -> None:
        table = (
            rows
            if isinstance(rows, pa.Table)
            else pa.Table.from_pylist(list(rows), to_arrow(self.schema))
        )
        self.files += write(
            table.to_batches(),
            storage=self.storage,
            root="t",
            schema=self.schema,
            options=WriteOptions(**options),
            name_prefix=f"f{len(self.files)}",
        )

    def plan(
        self,
        *,
        schema: Schema | None = None,
        deleted: Mapping[int, Sequence[int]] | None = None,
        **changes: Any,
    ) -> Plan:
        read_as = schema or self.schema
        live = tuple(
            LiveFile(FileId(n), f, Version(0), None, 10 + n, SnapshotId(1), 1000 * n)
            for n, f in enumerate(self.files)
        )
        gone = {FileId(n): Positions(p) for n, p in (deleted or {}).items()}
        names = tuple(f.name for f in read_as.fields)
        return replace(Plan("t", Version(0), read_as, names, None, live, 0, gone), **changes)


def local(tmp_path: Path, text: str) -> Written:
    return Written(LocalStorage(tmp_path), text)


def by_duckdb(
    storage: Storage, plan: Plan, sql: str = "SELECT * FROM t", metadata: tuple[str, ...] = ()
) -> pa.Table:
    with Session(storage, LIMITS) as session:
        session.bind_plan("t", plan, metadata=metadata)
        return session.batches(sql).read_all()


def by_arrow(storage: Storage, plan: Plan, metadata: tuple[str, ...] = ()) -> pa.Table:
    schema = read_schema(plan, metadata)
    return pa.Table.from_batches(read(plan, storage, metadata=metadata), schema)


def routes(storage: Storage, plan: Plan) -> set[str]:
    """Who reads the plan's files."""
    with Session(storage, LIMITS) as session:
        session.bind_plan("t", plan)
        (shown,) = (
            session.batches("EXPLAIN SELECT * FROM t").read_all()["explain_value"].to_pylist()
        )
    names = {"READ_PARQUET": "duckdb", "Arrow Scan": "arrow"}
    return {who for word, who in names.items() if word in shown}
