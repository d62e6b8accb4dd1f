"""Rows that a version took away and rows it brought, matched to one another."""

from collections.abc import Iterator, Sequence

import pyarrow as pa

from lakebed.rowops.workbench import Workbench

INSERT, DELETE = "insert", "delete"
BEFORE, AFTER = "update_before", "update_after"


class Pairing:
    """By the SQL engine, which goes to disk when rows are many.

    Both sides have `columns`, and beside them `row_id` and a number `n`.
    """

    def __init__(self, bench: Workbench, columns: Sequence[str]) -> None:
        self._bench = bench
        self._columns = columns
        self._gone, self._came, self._pairs = (bench.name(n) for n in ("gone", "came", "pairs"))

    def load(self, gone: pa.RecordBatchReader, came: pa.RecordBatchReader) -> None:
        run = self._bench.run
        for table, rows in ((self._gone, gone), (self._came, came)):
            run(f"CREATE TEMP TABLE {table} AS SELECT * FROM {self._bench.bind_rows(rows)}")
        run(f"CREATE TEMP TABLE {self._pairs} (gone BIGINT, came BIGINT, changed BOOLEAN)")

    def by_row_id(self) -> None:
        """A row with the same id on both sides is the same row, changed or only copied."""
        changed = " OR ".join(f"g.{c} IS DISTINCT FROM a.{c}" for c in self._columns)
        self._bench.run(
            f"INSERT INTO {self._pairs} SELECT g.n, a.n, {changed}"
            f" FROM {self._gone} g JOIN {self._came} a ON g.row_id = a.row_id"
        )

    def same_rows(self) -> None:
        """Equal rows cancel out, each one of one side with one of the other."""
        self._match(self._columns, "IS NOT DISTINCT FROM", changed=False)

    def by_key(self, key: Sequence[str]) -> None:
        self._match(key, "=", changed=True)

    def _match(self, columns: Sequence[str], equals: str, *, changed: bool) -> None:
        on = " AND ".join(f"g.{c} {equals} a.{c}" for c in columns)
        self._bench.run(
            f"INSERT INTO {self._pairs} SELECT g.n, a.n, {changed}"
            f" FROM {self._ranked(self._gone, 'gone', columns)} g"
            f" JOIN {self._ranked(self._came, 'came', columns)} a ON g.k = a.k AND {on}"
        )

    def _ranked(self, table: str, side: str, columns: Sequence[str]) -> str:
        """Rows that are in no pair yet; `k` counts those with the same values."""
        listed = ", ".join(columns)
        return (
            f"(SELECT n, {listed}, row_number() OVER (PARTITION BY {listed} ORDER BY n) AS k"
            f" FROM {self._unpaired(table, side)})"
        )

    def _unpaired(self, table: str, side: str) -> str:
        return f"(SELECT t.* FROM {table} t ANTI JOIN {self._pairs} p ON t.n = p.{side})"

    def _paired(self, table: str, side: str) -> str:
        return (
            f"(SELECT t.*, p.came AS place FROM {table} t JOIN {self._pairs} p ON t.n = p.{side}"
            " WHERE p.changed)"
        )

    def changes(self) -> Iterator[pa.RecordBatch]:
        """Deletes, then updates (before, after), then inserts; what it is comes last."""
        listed = ", ".join(self._columns)
        gone, came = (self._gone, "gone"), (self._came, "came")
        parts = (
            (DELETE, 0, "n", self._unpaired(*gone)),
            (BEFORE, 1, "place", self._paired(*gone)),
            (AFTER, 1, "place", self._paired(*came)),
            (INSERT, 2, "n", self._unpaired(*came)),
        )
        everything = " UNION ALL ".join(
            f"SELECT {listed}, '{op}' AS op, {part} AS part, {place} AS place FROM {rows}"
            for op, part, place, rows in parts
        )
        # "update_before" sorts behind "update_after".
        yield from self._bench.batches(
            f"SELECT {listed}, op FROM ({everything}) ORDER BY part, place, op DESC"
        )

    def close(self) -> None:
        for table in (self._gone, self._came, self._pairs):
            self._bench.run(f"DROP TABLE {table}")
