"""Runs in DuckDB 1.5.5's own interpreter: queries as JSON on stdin, answers as JSON on stdout.

They are {"setup": [sql], "queries": [sql]}; an answer is {"rows": {key: {column: repr}}}, or
{"error": text}.
"""

import json
import sys
from pathlib import Path

import duckdb  # type: ignore[import-not-found,unused-ignore]  # of another environment
import duckdb_extensions  # type: ignore[import-not-found,unused-ignore]  # as above

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tests.interop.plain import plain_rows


def main() -> None:
    connection = duckdb.connect()
    for extension in ("avro", "httpfs", "iceberg", "delta"):
        load(connection, extension)
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute("SET arrow_lossless_conversion = true")  # uuids as bytes
    asked = json.load(sys.stdin)
    for sql in asked["setup"]:
        connection.execute(sql)
    answers = [answer(connection, sql) for sql in asked["queries"]]
    json.dump(answers, sys.stdout)


def load(connection: duckdb.DuckDBPyConnection, extension: str) -> None:
    try:
        connection.execute(f"LOAD {extension}")
    except duckdb.IOException:  # a new machine: the wheel has it
        duckdb_extensions.import_extension(extension, con=connection)
        connection.execute(f"LOAD {extension}")


def answer(connection: duckdb.DuckDBPyConnection, sql: str) -> dict[str, object]:
    try:
        rows = plain_rows(connection.execute(sql).to_arrow_table())
    except duckdb.Error as error:
        return {"error": str(error)}
    return {"rows": {key: {n: repr(v) for n, v in row.items()} for key, row in rows.items()}}


if __name__ == "__main__":
    main()
