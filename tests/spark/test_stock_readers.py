"""Stock readers show, version by version, the rows that Spark's changes have left in a table."""

from collections.abc import Iterable
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from lakebed.api.lake import Lake
from lakebed.api.spark import Spark
from lakebed.api.table import Table
from tests.interop.duckdb155 import asked_of_duckdb
from tests.interop.plain import Rows, plain_rows
from tests.interop.readers import (
    At,
    DeltaArrow,
    DeltaQuery,
    Filter,
    Operator,
    PolarsDelta,
    PolarsIceberg,
    PyIceberg,
    Reader,
    places,
)

SCHEMA = "id long not null, k string, n int, at timestamp, x double, o struct<a: int, b: string>"
READERS: dict[str, Reader] = {
    "deltalake to_pyarrow": DeltaArrow(),
    "deltalake QueryBuilder": DeltaQuery(),
    "Polars scan_delta": PolarsDelta(),
    "PyIceberg": PyIceberg(),
    "Polars scan_iceberg": PolarsIceberg(),
}
# From which version on a reader refuses the table, and the word it says: docs/readers.md.
REFUSALS = {
    "deltalake to_pyarrow": {"deleted": "deletionVectors"},
    "deltalake QueryBuilder": {"widened": "TypeWidening"},
    "Polars scan_delta": {"renamed": "columnMapping"},
}
OPERATORS: tuple[Operator, ...] = ("=", "<", ">=")
LAYOUTS: dict[str, list[str]] = {"plain": [], "partitioned": ["k"]}


def rows(sp: Spark, first: int, last: int, extra: str = "") -> DataFrame:
    made = sp.session.range(first, last).selectExpr(
        "id",
        "if(id % 7 = 0, null, concat('k', id % 3, ' ä/=%')) AS k",
        "int(if(id % 5 = 0, null, id)) AS n",
        "timestamp_seconds(1700000000 + id * 3600) AS at",
        "if(id % 11 = 0, double('NaN'), if(id % 4 = 0, -0.0D, id / 2)) AS x",
        "if(id % 6 = 0, null, named_struct('a', int(id), 'b', string(id))) AS o",
        "id AS given",
    )
    return made.selectExpr("*", extra or "0 AS none").drop("given", "none")


def changed(sp: Spark, table: Table, partition_by: list[str]) -> dict[str, int]:
    """The first version after each step that some reader minds."""
    name, marks = table.name, {}
    sp.append(rows(sp, 0, 40), name)
    sp.delete(name, "id % 4 = 1")
    marks["deleted"] = table.version
    sp.append(rows(sp, 40, 60, "int(given * 2) AS extra"), name, merge_schema=True)
    sp.update(name, {"n": "n + 1", "extra": "7", "o": "named_struct('a', 1, 'b', k)"}, "id < 10")
    source = rows(sp, 30, 70, "int(-given) AS extra")
    merge = sp.merge(name, source, "t.id = s.id").when_matched_delete("s.id % 10 = 3")
    merge.when_matched_update_all("s.id % 2 = 0").when_not_matched_insert_all("s.id < 65").execute()
    if partition_by:
        sp.overwrite(rows(sp, 100, 104).where("k IS NOT NULL"), name, partitions=True)
        table.alter().set_partitioning(["bucket(3, id)", "month(at)"]).commit()
    sp.overwrite(rows(sp, 200, 205), name, where="id >= 50")
    table.alter().rename_column("x", "y").drop_column("extra").add_column("x", "string").commit()
    marks["renamed"] = table.version
    fresh = rows(sp, 300, 310).withColumnRenamed("x", "y").selectExpr("*", "'new' AS x")
    sp.append(fresh, name)
    table.alter().widen_column("n", "long").commit()
    marks["widened"] = table.version
    sp.update(name, {"n": "n + 5000000000", "x": "string(y)"}, "id % 3 = 0")
    sp.delete(name, "id IN (202, 301)")
    return marks


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_reader_shows_what_spark_changed_at_every_version(
    layout: str, lake: Lake, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")
    sp = lake.spark(spark)
    table = lake.create_table("a.t", SCHEMA, partition_by=LAYOUTS[layout])
    marks = changed(sp, table, LAYOUTS[layout])
    # An alteration is no snapshot of Iceberg; what follows it is.
    listed = [c.version for c in table.history() if c.operation not in ("create", "alter")]
    offered = {v: at for v, at in places(table).items() if v in listed}
    wanted = {v: plain_rows(table.scan(version=v).to_arrow()) for v in offered}
    assert any(table.scan(version=v).plan().deleted for v in offered)
    assert not lake.check().findings

    for name, reader in READERS.items():
        for version, at in offered.items():
            said = [w for m, w in REFUSALS.get(name, {}).items() if version >= marks[m]]
            if said:
                with pytest.raises(Exception, match=said[0]):
                    reader.read(at)
            else:
                assert plain_rows(reader.read(at)) == wanted[version], (name, version)
    check_duckdb(offered, wanted)
    check_connectors(spark, offered, wanted, [marks["renamed"] - 1, table.version])


def check_duckdb(offered: dict[int, At], wanted: dict[int, Rows]) -> None:
    asked = [
        (version, f"SELECT * FROM {source}")
        for version, at in offered.items()
        for source in (
            f"delta_scan('{at.location}', version={version})",
            f"iceberg_scan('{at.metadata_path}')",
        )
    ]
    answers = asked_of_duckdb([query for _, query in asked])
    for (version, query), answer in zip(asked, answers, strict=True):
        told = {str(k): {n: repr(v) for n, v in r.items()} for k, r in wanted[version].items()}
        assert answer == {"rows": told}, query


def check_connectors(
    spark: SparkSession, offered: dict[int, At], wanted: dict[int, Rows], versions: list[int]
) -> None:
    """Spark's own connectors, which are slow to ask, at the versions that matter."""
    for version in versions:
        at = offered[version]
        iceberg = spark.read.format("iceberg").load(str(at.metadata_path))
        delta = spark.read.format("delta").option("versionAsOf", version).load(at.location)
        for frame in (iceberg, delta):
            assert plain_rows(frame.toArrow()) == wanted[version], version


ZEROS = ([-1.0, -0.0], [-0.0, 1.0], [0.0, 1.0], [-1.0, 0.0], [-0.0, -0.0], [2.0, 3.0])
ABOUT_ZERO = ("x = 0.0", "x >= -0.0D", "x < 0.0")


def test_zeros_of_both_signs_are_found(
    lake: Lake, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Published bounds tell of both when one is a bound. What Parquet files themselves tell keeps
    them apart, and so do the connectors of Spark in conditions of their own: docs/readers.md."""
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")
    sp = lake.spark(spark)
    table = lake.create_table("a.t", "id long, x double, file int", partition_by=["file"])
    given = {10 * f + n: values[n % 2] for f, values in enumerate(ZEROS) for n in range(4)}
    frame = spark.createDataFrame(list(given.items()), "id long, x double")
    sp.append(frame.selectExpr("*", "int(id / 10) AS file"), "a.t")
    at = places(table)[table.version]
    stock = {
        "iceberg": spark.read.format("iceberg").load(str(at.metadata_path)),
        "delta": spark.read.format("delta").load(table.location),
    }

    lost = set()
    for where in ABOUT_ZERO:
        wanted = ids_of(lake.sql(f"SELECT id FROM a.t WHERE {plain_sql(where)}").to_pylist())
        for name, frame in stock.items():
            found = ids_of(frame.where(where).collect())
            assert found <= wanted, (name, where)
            assert all(given[each] == 0 for each in wanted - found), (name, where)
            lost |= {name} if found != wanted else set()
    assert "iceberg" in lost  # gone? Then docs/readers.md and the guide have good news to tell
    check_pruning(at)


def check_pruning(at: At) -> None:
    for name, reader in READERS.items():
        whole = reader.read(at)
        for operator in OPERATORS:
            for zero in (0.0, -0.0):
                condition = Filter("x", operator, "double", zero)
                found, told = reader.ids(at, condition, whole)
                assert found == told, (name, condition)
    conditions = [plain_sql(where) for where in ABOUT_ZERO]
    sources = (f"delta_scan('{at.location}')", f"iceberg_scan('{at.metadata_path}')")
    whole_ones = [f"(SELECT id, x, count(*) OVER () FROM {source})" for source in sources]
    asked = [
        [f"SELECT id FROM {source} WHERE {where}" for source in each for where in conditions]
        for each in (sources, whole_ones)  # of these nothing is pruned
    ]
    answers = asked_of_duckdb(asked[0] + asked[1])
    assert answers[: len(asked[0])] == answers[len(asked[0]) :]


def ids_of(rows: Iterable[Any]) -> set[int]:
    return {row["id"] for row in rows}


def plain_sql(where: str) -> str:
    return where.replace("D", "")
