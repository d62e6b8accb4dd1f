"""Spark as the measures use it: one session per process, tuned alike for every system."""

from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.data import make_tpch
from benchmarks.measure import Fact

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakebed import Lake

TABLE = "bench.lineitem"
_MEMORY = "3g"
_CONFIG = {
    # Delta's default of 50 is for logs of another size.
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.sql.shuffle.partitions": "4",
}


def session() -> "SparkSession":
    """With the connectors, and with what `lake.spark()` sets; the process has one of them."""
    from lakebed.engines.spark.session import SessionOptions, start_session

    options = SessionOptions(connectors=True, memory=_MEMORY, config=_CONFIG)
    return start_session(options)


def open_lake(folder: Path, *, create: bool = False) -> "Lake":
    import lakebed

    return lakebed.open(folder / "lake", create=create)


def lineitem(data: Path, thousandths: int) -> "DataFrame":
    return session().read.parquet(str(make_tpch(data, thousandths) / "lineitem.parquet"))


def make_lineitem(folder: Path, rows: "DataFrame") -> None:
    """A lake with the table, written by Spark."""
    from lakebed.engines.spark.types import from_spark

    with open_lake(folder, create=True) as lake:
        lake.create_table(TABLE, from_spark(rows.schema))
        lake.spark(session()).append(rows, TABLE)


def iceberg_catalog(folder: Path) -> str:
    """The name of a catalog for tables below the folder, which remembers none of them."""
    name = f"ice_{folder.parent.name}_{folder.name}".replace("-", "_")
    catalog = f"spark.sql.catalog.{name}"
    conf = session().conf
    conf.set(catalog, "org.apache.iceberg.spark.SparkCatalog")
    conf.set(f"{catalog}.type", "hadoop")
    conf.set(f"{catalog}.warehouse", str(folder))
    conf.set(f"{catalog}.cache-enabled", "false")
    return name


def forget_delta() -> None:
    """A table that was put back must not be known as it was."""
    jvm = session()._jvm  # noqa: SLF001 - there is no other way
    assert jvm is not None
    jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()


def run_all(frame: "DataFrame") -> None:
    """Compute every row and column, and keep none."""
    frame.write.format("noop").mode("overwrite").save()


def sums(frame: "DataFrame") -> dict[str, Fact]:
    """What tells rows of lineitem from others."""
    row = frame.selectExpr(
        "count(*) AS rows",
        "CAST(sum(l_tax) AS STRING) AS tax",
        "sum(l_linenumber) AS lines",
        "sum(crc32(l_comment)) AS comments",
    ).collect()[0]
    return dict(row.asDict())
