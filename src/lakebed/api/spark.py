"""Spark on a lake: `lake.spark()` gives tables as DataFrames, each at one version."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, TypedDict

from lakebed.api.parts import Parts
from lakebed.api.points import to_point
from lakebed.api.scan import to_columns, to_predicate
from lakebed.api.spark_sql import SparkSql
from lakebed.api.spark_tables import Pinned, SparkTables, to_reader
from lakebed.api.transaction import Transaction
from lakebed.engines import check_spark_session, spark_frame, spark_session
from lakebed.model.errors import InvalidInput
from lakebed.model.names import parse_table_ref
from lakebed.security.policy import require

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class SparkOptions(TypedDict, total=False):
    """What a session that is started here should be like."""

    app_name: str
    master: str  # local[*] unless given; also spark://…, yarn, k8s://…, sc://…
    connectors: bool  # Iceberg and Delta; when their jars are in the cache unless given
    ui: bool  # off unless asked for
    memory: str  # of the driver, such as 4g
    config: Mapping[str, str]  # any setting of Spark; it has the last word


def session_from(session: "SparkSession | None", options: SparkOptions) -> "SparkSession":
    if session is not None:
        if options:
            raise InvalidInput(
                "a session that is given cannot have options",
                hint="leave out the session, or set them where it is started",
            )
        return check_spark_session(session)
    return spark_session(
        app_name=options.get("app_name", "lakebed"),
        master=options.get("master"),
        connectors=options.get("connectors"),
        ui=options.get("ui", False),
        memory=options.get("memory"),
        config=options.get("config", {}),
    )


class Spark(SparkSql):
    """A lake's tables on one Spark session, classic or Spark Connect."""

    def __init__(self, parts: Parts, session: "SparkSession") -> None:
        self._parts = parts
        self._session = session

    @property
    def session(self) -> "SparkSession":
        return self._session

    def table(
        self,
        name: str,
        *,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        version: int | None = None,
        timestamp: datetime | str | int | None = None,
        ref: str | None = None,
        transaction: Transaction | None = None,
        reader: str = "auto",
    ) -> "DataFrame":
        """A version of a table (the newest one by default); a DataFrame stays at that version.

        `where` leaves out files before Spark sees them. With the Iceberg connector filters of the
        DataFrame do too; without it they only skip inside the files. `reader` is auto, iceberg
        (the connector, or an error) or parquet. auto takes the connector where there is one, but
        Spark's own Parquet reader for the newest version of a table of at most 16 files that is
        neither partitioned nor sorted and has lost no rows. In a transaction its own changes are
        seen.
        """
        chosen, wanted, predicate = to_reader(reader), to_columns(columns), to_predicate(where)
        table_name, own_ref = parse_table_ref(name)
        point = to_point(version, timestamp, ref or own_ref)
        if transaction is not None:
            if (version, timestamp, ref) != (None, None, None) or chosen == "iceberg":
                raise InvalidInput(
                    "a transaction has one version of each table, read by the Parquet reader",
                    hint="leave out version, timestamp, ref and reader",
                )
            plan = transaction.table(name).scan(columns=columns, where=where).plan()
            return spark_frame(self._session, plan, self._parts.storage)
        require(self._parts.principal, "read", str(table_name))
        head = point.head(self._parts, self._parts.catalog.find(table_name))
        pinned = Pinned(head, point.commit(self._parts, head), wanted, predicate)
        tables = SparkTables(self._parts, self._session)
        return tables.held(tables.frame(pinned, chosen), [pinned])
