"""Engines read plans and write data files. All but Arrow are imported when first needed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

from lakebed.core.lease import Hold
from lakebed.core.plan import Plan
from lakebed.model.errors import MissingExtra
from lakebed.model.expressions import Predicate
from lakebed.model.schema import Schema
from lakebed.storage.base import Storage

if TYPE_CHECKING:
    import polars as pl
    from datafusion import SessionContext
    from duckdb import DuckDBPyConnection, DuckDBPyRelation
    from pyspark.sql import DataFrame, SparkSession

    from lakebed.engines.datafusion.session import MakeDataset
    from lakebed.engines.duckdb.pool import Pool
    from lakebed.engines.duckdb.session import Session
    from lakebed.engines.spark.bench import Bench


def open_session(
    storage: Storage,
    *,
    memory_bytes: int | None,
    spill_folder: str | None,
    threads: int | None,
    roots: Sequence[str] = (),
    pool: "Pool | None" = None,
) -> "Session":
    """`roots` are of tables whose files the engine may read by itself at any time."""
    from lakebed.engines.duckdb.instance import Limits
    from lakebed.engines.duckdb.session import Session

    limits = Limits(memory_bytes, spill_folder, threads)
    return Session(storage, limits, roots=roots, pool=pool)


def relation_of(
    plan: Plan, storage: Storage, hold: Hold, *, connection: "DuckDBPyConnection | None"
) -> "DuckDBPyRelation":
    from lakebed.engines.duckdb import scan

    return scan.relation_of(plan, storage, hold, connection)


def frame_of(rows: pa.Table) -> "pl.DataFrame":
    with _needing("Polars", "polars"):
        from lakebed.engines.polars.frame import whole_frame
    return whole_frame(rows)


def lazy_frame_of(plan: Plan, storage: Storage, hold: Hold) -> "pl.LazyFrame":
    with _needing("Polars", "polars"):
        from lakebed.engines.polars.frame import lazy_frame
    return lazy_frame(plan, storage, hold)


def datafusion_session(namespaces: "Mapping[str, Mapping[str, MakeDataset]]") -> "SessionContext":
    with _needing("DataFusion", "datafusion"):
        from lakebed.engines.datafusion.session import new_session
    return new_session(namespaces)


def spark_session(
    *,
    app_name: str,
    master: str | None,
    connectors: bool | None,
    ui: bool,
    memory: str | None,
    config: Mapping[str, str],
) -> "SparkSession":
    with _needing("PySpark", "spark"):
        from lakebed.engines.spark.session import SessionOptions, start_session
    return start_session(SessionOptions(app_name, master, connectors, ui, memory, config))


def check_spark_session(session: object) -> "SparkSession":
    """A session of somebody else's making, Spark Connect's too."""
    with _needing("PySpark", "spark"):
        from lakebed.engines.spark.session import check_session
    return check_session(session)


def spark_reads_iceberg(session: "SparkSession") -> bool:
    from lakebed.engines.spark.session import has_iceberg

    return has_iceberg(session)


def spark_has_table(session: "SparkSession", parts: Sequence[str]) -> bool:
    """Does Spark itself know a table or view of that name?"""
    from lakebed.engines.spark.session import has_table

    return has_table(session, parts)


def spark_frame(
    session: "SparkSession", plan: Plan, storage: Storage, *, metadata: tuple[str, ...] = ()
) -> "DataFrame":
    """A plan read by Spark's own Parquet reader."""
    from lakebed.engines.spark.read import read

    return read(session, plan, storage, metadata=metadata)


def spark_frame_in_use(frame: "DataFrame") -> Callable[[], bool] | None:
    """Tells whether anything made of the frame still lives; None: nobody can tell."""
    from lakebed.engines.spark.lifetime import in_use

    return in_use(frame)


def spark_bench(session: "SparkSession", storage: Storage) -> "Bench":
    """What changes of tables need of Spark."""
    from lakebed.engines.spark.bench import Bench

    return Bench(session, storage)


def published_frame(
    session: "SparkSession",
    metadata_location: str,
    schema: Schema,
    *,
    columns: Sequence[str],
    predicate: Predicate | None,
) -> "DataFrame":
    """A published version read by the Iceberg connector."""
    from lakebed.engines.spark.published import read_published

    return read_published(session, metadata_location, schema, columns=columns, predicate=predicate)


@contextmanager
def _needing(library: str, extra: str) -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise MissingExtra(
            f"{library} is not installed", hint=f"pip install 'lakebed[{extra}]'"
        ) from error
