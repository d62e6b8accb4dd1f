"""DuckLake's table of the same files, its rows written into its own catalog in bulk.

A plan is a query up to the error that its first file is not there: files are found before.
"""

import os
import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.measure import Call, Case, Fact
from benchmarks.measures.plan_files import COMMIT, PER_DAY, ROWS, STEP, Shape, choose

if TYPE_CHECKING:
    import duckdb

_META = "__ducklake_metadata_lake"
_POSTGRES = "LAKEBED_TEST_POSTGRES"
_FIRST = 3  # snapshot: before it the table was created and partitioned
_DATE = f"(DATE '1970-01-01' + (n // {PER_DAY})::INTEGER)"
_BOUNDS = {
    1: (f"n * {ROWS}", f"n * {ROWS} + {ROWS - 1}"),
    2: (f"o * {ROWS}", f"o * {ROWS} + {ROWS - 1}"),
    3: ("printf('customer-%09d-0', o)", "printf('customer-%09d-9', o)"),
    4: (f"{_DATE} || ' 00:00:00'", f"{_DATE} || ' 23:59:59.999999'"),
}
_PARTS = ("year", "month", "day")


class DuckLakePlan:
    environment = "ducklake"

    def __init__(self, catalog: str) -> None:
        self.owner = f"ducklake on {catalog}"
        self._catalog = catalog

    def make(self, folder: Path, case: Case, data: Path) -> None:
        connection = self._attached(folder)
        connection.execute("CREATE TABLE lake.t (a BIGINT, b BIGINT, c VARCHAR, d TIMESTAMP)")
        connection.execute("ALTER TABLE lake.t SET PARTITIONED BY (year(d), month(d), day(d))")
        inner = f".{self._schema(folder)}" if self._catalog == "postgres" else ""
        _fill(connection, f"{_META}{inner}", case.sizes["files"])
        connection.execute("DETACH lake")

    def open(self, folder: Path, case: Case, data: Path) -> Call:
        connection, shape = self._attached(folder), Shape(case.sizes["files"])
        (n,), find = choose(shape, 1), _finder(connection)
        find("a = -1")

        def facts(answer: object) -> dict[str, Fact]:
            expected = shape.expected(case.text, n)
            right = answer in expected if expected else answer is None
            return {"right": int(right), "plans": 1}

        return Call(lambda: find(shape.condition(case.text, n)), facts)

    def _attached(self, folder: Path) -> "duckdb.DuckDBPyConnection":
        import duckdb

        connection, extensions = duckdb.connect(), import_module("duckdb_extensions")
        for name in ("ducklake", "sqlite_scanner", "postgres_scanner"):
            extensions.import_extension(name)
            connection.execute(f"LOAD {name}")
        options = [f"DATA_PATH '{folder}/data'", "DATA_INLINING_ROW_LIMIT 0"]
        place = f"{folder}/catalog.duckdb"
        if self._catalog == "sqlite":
            place = f"sqlite:{folder}/catalog.sqlite"
        elif self._catalog == "postgres":
            place = f"postgres:{os.environ[_POSTGRES]}"
            options.append(f"METADATA_SCHEMA '{self._schema(folder)}'")
        connection.execute(f"ATTACH 'ducklake:{place}' AS lake ({', '.join(options)})")
        return connection

    def _schema(self, folder: Path) -> str:
        return re.sub(r"\W", "_", f"ducklake_{folder.parents[1].name}").lower()


def _finder(connection: "duckdb.DuckDBPyConnection") -> Callable[[str], str | None]:
    import duckdb

    def find(condition: str) -> str | None:
        """The file that the query opens first, if it opens any."""
        try:
            connection.execute(f"SELECT b FROM lake.t WHERE {condition}").fetchall()
        except duckdb.Error as error:
            missing = re.search(r"data/\d{7}\.parquet", str(error))
            if missing is None:
                raise
            return missing[0]
        return None

    return find


def _fill(connection: Any, catalog: str, files: int) -> None:
    """The rows that appends of some files each, and a delete at the end, leave behind."""
    numbers = f"(SELECT range AS n, range * {STEP} % {files} AS o FROM range({files}))"
    last = _FIRST + (files - 1) // COMMIT + 1
    begins = f"{_FIRST} + n // {COMMIT}"
    ends = f"CASE WHEN n % 200 = 7 THEN {last} END"

    def insert(table: str, rows: str) -> None:
        connection.execute(f"INSERT INTO {catalog}.{table} {rows}")

    connection.execute("BEGIN")
    insert(
        "ducklake_data_file",
        f"SELECT n, 1, {begins}, {ends}, NULL, printf('data/%07d.parquet', n), TRUE, 'parquet',"
        f" {ROWS}, 10000, 400, n * {ROWS}, 2, NULL, NULL, NULL FROM {numbers}",
    )
    for column, (low, high) in _BOUNDS.items():
        insert(
            "ducklake_file_column_stats",
            f"SELECT n, 1, {column}, 800, {ROWS}, 0, ({low})::VARCHAR, ({high})::VARCHAR, NULL,"
            f" NULL FROM {numbers}",
        )
    for place, part in enumerate(_PARTS):
        insert(
            "ducklake_file_partition_value",
            f"SELECT n, 1, {place}, {part}({_DATE})::VARCHAR FROM {numbers}",
        )
    insert(
        "ducklake_delete_file",
        f"SELECT {files} + n, 1, {last}, NULL, n, printf('data/%07d-delete.parquet', n), TRUE,"
        f" 'parquet', 1, 800, 600, NULL, NULL FROM {numbers} WHERE n % 200 = 13",
    )
    insert(
        "ducklake_snapshot",
        f"SELECT range, now(), 2, 3, least((range - {_FIRST - 1}) * {COMMIT}, {files}) +"
        f" CASE WHEN range = {last} THEN {files} ELSE 0 END FROM range({_FIRST}, {last + 1})",
    )
    insert(
        "ducklake_snapshot_changes",
        f"SELECT range, CASE WHEN range = {last} THEN 'deleted_from_table:1' ELSE"
        f" 'inserted_into_table:1' END, NULL, NULL, NULL FROM range({_FIRST}, {last + 1})",
    )
    insert(
        "ducklake_table_stats",
        f"SELECT 1, {files * ROWS}, {files * ROWS}, {files * 10_000}",
    )
    for column, (low, high) in _BOUNDS.items():
        insert(
            "ducklake_table_column_stats",
            f"SELECT 1, {column}, FALSE, NULL, (SELECT ({low})::VARCHAR FROM {numbers} WHERE"
            f" {'o' if column in (2, 3) else 'n'} = 0), (SELECT ({high})::VARCHAR FROM {numbers}"
            f" WHERE {'o' if column in (2, 3) else 'n'} = {files - 1}), NULL",
        )
    connection.execute("COMMIT")
