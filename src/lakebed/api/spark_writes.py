"""Writing tables from Spark: executors write the files, this process alone commits."""

from typing import TYPE_CHECKING, Unpack

from lakebed.api.options import CommitOptions
from lakebed.api.parts import Parts
from lakebed.api.spark_rows import SparkRows
from lakebed.api.table import Table
from lakebed.api.transaction import Transaction
from lakebed.api.txtable import TransactionTable
from lakebed.engines import spark_bench
from lakebed.model.errors import InvalidInput
from lakebed.model.history import Commit
from lakebed.model.names import parse_table_ref
from lakebed.security.policy import require

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakebed.engines.spark.bench import Bench


class SparkWrites:
    """With `transaction` nothing is committed: the change is staged there, and is seen there."""

    _parts: Parts
    _session: "SparkSession"

    def append(
        self,
        frame: object,
        name: str,
        *,
        merge_schema: bool = False,
        transaction: Transaction | None = None,
        **options: Unpack[CommitOptions],
    ) -> Commit | None:
        """Add the rows of a DataFrame, each checked as it is written.

        Columns are matched by name. With `merge_schema` the table gets the columns it lacks, and
        wider types, in the same commit.
        """
        rows = self._rows(frame)
        if transaction is not None:
            self._staged(transaction, name, options).append(rows, merge_schema=merge_schema)
            return None
        return self._table(name).append(rows, merge_schema=merge_schema, **options)

    def overwrite(
        self,
        frame: object,
        name: str,
        *,
        partitions: bool = False,
        transaction: Transaction | None = None,
        **options: Unpack[CommitOptions],
    ) -> Commit | None:
        """Replace every row, or with `partitions` those of the partitions the new rows fall in."""
        rows = self._rows(frame)
        if transaction is not None:
            self._staged(transaction, name, options).overwrite(rows, partitions=partitions)
            return None
        return self._table(name).overwrite(rows, partitions=partitions, **options)

    @property
    def _bench(self) -> "Bench":
        return spark_bench(self._session, self._parts.storage)

    def _rows(self, frame: object) -> SparkRows:
        bench = self._bench
        return SparkRows(bench, bench.check_frame(frame))

    def _table(self, name: str) -> Table:
        wanted, ref = parse_table_ref(name)
        require(self._parts.principal, "write", str(wanted))
        return Table(self._parts, self._parts.catalog.find(wanted), ref)

    def _staged(
        self, transaction: Transaction, name: str, options: CommitOptions
    ) -> TransactionTable:
        if options:
            raise InvalidInput("a transaction has one set of options", hint="give them to it")
        return transaction.table(name)
