"""Queries in Spark's SQL: the lake's tables in them are bound at one set of versions."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from lakebed.api.parts import Parts
from lakebed.api.points import to_point
from lakebed.api.spark_tables import Pinned, SparkTables
from lakebed.api.spark_views import with_views
from lakebed.api.sql.metadata import metadata_rows
from lakebed.api.table import Table
from lakebed.engines import spark_bench, spark_has_table
from lakebed.model.errors import SqlUnsupported, TableNotFound
from lakebed.model.history import TableHead
from lakebed.model.names import parse_table_name
from lakebed.security.policy import require
from lakebed.sql.fragments import metadata_of
from lakebed.sql.query import MetadataTable
from lakebed.sql.spark_query import SparkTable, find_spark_tables, with_names

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class SparkQuery:
    """A query, and the tables of the lake in it; it has no views any more."""

    text: str
    tables: Sequence[SparkTable]


def read_query(parts: Parts, session: "SparkSession", text: str) -> SparkQuery:
    """Names of one part, and tables that only Spark knows, are left to Spark."""
    opened = with_views(parts, session, text)
    found = [t for t in find_spark_tables(opened) if _is_ours(parts, session, t)]
    return SparkQuery(opened, found)


def run_query(parts: Parts, session: "SparkSession", text: str) -> "DataFrame":
    query = read_query(parts, session, text)
    if not query.tables:
        return session.sql(query.text)
    reading = _Reading(parts, SparkTables(parts, session), session)
    names = [reading.name(table, head) for table, head in reading.heads(query.tables)]
    # Spark's own formatting binds frames without leaving views behind, on Spark Connect too.
    made = session.sql("".join(_formatted(query, names)), **reading.frames)
    return reading.tables.held(made, reading.pinned.values())


def _formatted(query: SparkQuery, names: list[str]) -> Iterator[str]:
    for piece, name in with_names(query.text, query.tables, names):
        yield piece.replace("{", "{{").replace("}", "}}")
        yield f"{{{name}}}" if name else ""


def _is_ours(parts: Parts, session: "SparkSession", table: SparkTable) -> bool:
    name = parse_table_name(_table_name(table)[0])
    if parts.catalog.exists(name):
        return True
    if spark_has_table(session, table.parts):
        return False
    parts.catalog.find(name)  # raises, and says which name is close
    raise TableNotFound(f"there is no table {name}", hint="`lakebed table list` shows the tables")


def _table_name(table: SparkTable) -> tuple[str, MetadataTable | None]:
    last, metadata = metadata_of(table.parts[-1])
    return ".".join((*table.parts[:-1], last)), metadata


@dataclass(frozen=True, slots=True)
class _Reading:
    """Frames of what a query reads, by the names that stand for them."""

    parts: Parts
    tables: SparkTables
    session: "SparkSession"
    frames: dict[str, Any] = field(default_factory=dict)
    pinned: dict[str, Pinned] = field(default_factory=dict)

    def heads(self, tables: Sequence[SparkTable]) -> Iterator[tuple[SparkTable, TableHead]]:
        """All of them at one moment."""
        wanted = [parse_table_name(_table_name(table)[0]) for table in tables]
        heads = self.parts.catalog.find_many(wanted)
        for head in heads:
            require(self.parts.principal, "read", str(head.name))
        return zip(tables, heads, strict=True)

    def name(self, table: SparkTable, main: TableHead) -> str:
        _, metadata = _table_name(table)
        if metadata is not None:
            name = f"lakebed_{main.id}_{metadata}"
            self.frames[name] = self._about(table, main, metadata)
            return name
        pinned = self._pinned(table, main)
        # One name for one version: Spark cannot analyse two views of one Iceberg metadata file.
        name = f"lakebed_{pinned.head.id}_{pinned.head.line}_{pinned.commit.version}"
        if name not in self.frames:
            self.frames[name] = self.tables.frame(pinned, "auto")
            self.pinned[name] = pinned
        return name

    def _pinned(self, table: SparkTable, main: TableHead) -> Pinned:
        point = to_point(table.version, table.timestamp, table.ref)
        if point == to_point():
            point = replace(point, version=main.version)
        head = point.head(self.parts, main)
        return Pinned(head, point.commit(self.parts, head))

    def _about(self, table: SparkTable, main: TableHead, metadata: MetadataTable) -> "DataFrame":
        """What the database knows; it is small."""
        if (table.version, table.timestamp, table.ref) != (None, None, None):
            raise SqlUnsupported(
                f"{main.name}${metadata} has no versions: it tells of all of them",
                hint="filter its rows by version or time instead",
            )
        if metadata == "changes":
            raise SqlUnsupported(
                f"{main.name}$changes is no table in Spark's SQL",
                hint='spark.readStream.format("lakebed") with readChangeFeed, or lake.sql()',
            )
        rows = metadata_rows(self.parts, Table(self.parts, main, None), metadata, ())
        return spark_bench(self.session, self.parts.storage).frame_of(rows)
