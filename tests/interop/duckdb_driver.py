"""Runs in DuckDB 1.5.5's own interpreter: queries as JSON on stdin, answers as JSON on stdout.

Each query is {"sql": …}; its answer {"rows": {key: {column: repr}}}, or {"error": text}.
"""

import json
import sys
from pathlib import Path

import duckdb  # type: ignore[import-not-found,unused-ignore]  # of another environment

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tests.interop.plain import plain_rows


def main() -> None:
    connection = duckdb.connect()
    connection.execute("LOAD iceberg")
    connection.execute("LOAD delta")
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute("SET arrow_lossless_conversion = true")  # uuids as bytes
    answers = [answer(connection, query["sql"]) for query in json.load(sys.stdin)]
    json.dump(answers, sys.stdout)


def answer(connection: duckdb.DuckDBPyConnection, sql: str) -> dict[str, object]:
    try:
        rows = plain_rows(connection.execute(sql).to_arrow_table())
    except duckdb.Error as error:
        return {"error": str(error)}
    return {"rows": {key: {n: repr(v) for n, v in row.items()} for key, row in rows.items()}}


if __name__ == "__main__":
    main()
