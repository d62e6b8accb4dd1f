"""Queries in Spark's SQL: the lake's tables in them are bound at one set of versions."""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lakebed.api.parts import Parts
from lakebed.api.points import to_point
from lakebed.api.spark_tables import Pinned, SparkTables
from lakebed.engines import spark_has_table
from lakebed.model.errors import SqlUnsupported, TableNotFound
from lakebed.model.names import parse_table_name
from lakebed.security.policy import require
from lakebed.sql.spark_query import SparkTable, find_spark_tables, with_names

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def run_query(parts: Parts, session: "SparkSession", text: str) -> "DataFrame":
    """Names of one part, and tables that only Spark knows, are left to Spark."""
    tables = [t for t in find_spark_tables(text) if _is_ours(parts, session, t)]
    if not tables:
        return session.sql(text)
    pinned = _pinned(parts, tables)
    # One name for one version: Spark cannot analyse two views of one Iceberg metadata file.
    names = [f"lakebed_{p.head.id}_{p.head.line}_{p.commit.version}" for p in pinned]
    reading = SparkTables(parts, session)
    frames: dict[str, Any] = {}
    for name, each in zip(names, pinned, strict=True):
        if name not in frames:
            frames[name] = reading.frame(each, "auto")
    # Spark's own formatting binds frames without leaving views behind, on Spark Connect too.
    return session.sql("".join(_formatted(text, tables, names)), **frames)


def _formatted(text: str, tables: list[SparkTable], names: list[str]) -> Iterator[str]:
    for piece, name in with_names(text, tables, names):
        yield piece.replace("{", "{{").replace("}", "}}")
        yield f"{{{name}}}" if name else ""


def _is_ours(parts: Parts, session: "SparkSession", table: SparkTable) -> bool:
    name = parse_table_name(table.name)
    if parts.catalog.exists(name):
        return True
    if parts.views.find(name) is not None:
        raise SqlUnsupported(
            f"{name} is a view in the lake's own SQL, which Spark does not read",
            hint="lake.sql() reads it; or name its tables here",
        )
    if spark_has_table(session, table.parts):
        return False
    parts.catalog.find(name)  # raises, and says which name is close
    raise TableNotFound(f"there is no table {name}", hint="`lakebed table list` shows the tables")


def _pinned(parts: Parts, tables: list[SparkTable]) -> list[Pinned]:
    """All of them at one moment."""
    heads = parts.catalog.find_many([parse_table_name(table.name) for table in tables])
    found = []
    for table, main in zip(tables, heads, strict=True):
        require(parts.principal, "read", str(main.name))
        point = to_point(table.version, table.timestamp, table.ref)
        if point == to_point():
            point = replace(point, version=main.version)
        head = point.head(parts, main)
        found.append(Pinned(head, point.commit(parts, head)))
    return found
