"""Writing tables from Spark: executors write the files, this process alone commits."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Unpack

from lakebed.api.merge import Merge, to_aliases
from lakebed.api.options import CommitOptions
from lakebed.api.parts import Parts
from lakebed.api.spark_changing import (
    SparkChanger,
    SparkSource,
    Stage,
    spark_condition,
    spark_matching,
    spark_values,
)
from lakebed.api.spark_rows import UTC, SparkRows
from lakebed.api.table import Table
from lakebed.api.transaction import Transaction
from lakebed.api.txtable import TransactionTable
from lakebed.engines import spark_bench
from lakebed.model.counts import RowCounts
from lakebed.model.errors import ExecutorLost, InvalidInput
from lakebed.model.history import Commit
from lakebed.model.names import parse_table_ref
from lakebed.rowops.clause import Clause
from lakebed.rowops.condition import Condition
from lakebed.security.policy import require

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakebed.engines.spark.bench import Bench

_LOSSES = 3  # of executors with rows of one change, before it is given up


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
        where: str | None = None,
        partitions: bool = False,
        transaction: Transaction | None = None,
        **options: Unpack[CommitOptions],
    ) -> Commit | None:
        """Replace every row, those that match `where`, or the partitions the new rows fall in."""
        rows = self._rows(frame)
        if where is not None:
            if partitions:
                raise InvalidInput("give `where` or `partitions`, not both", hint="leave one out")
            condition = self._condition(where)
            return self._change(
                "overwrite",
                name,
                lambda changer: changer.overwrite(rows.frame, condition),
                transaction=transaction,
                options=options,
                request=(where,),
            )
        if transaction is not None:
            self._staged(transaction, name, options).overwrite(rows, partitions=partitions)
            return None
        return self._table(name).overwrite(rows, partitions=partitions, **options)

    def delete(
        self,
        name: str,
        where: str,
        *,
        transaction: Transaction | None = None,
        **options: Unpack[CommitOptions],
    ) -> Commit | None:
        """Delete the rows for which a condition in Spark's SQL is TRUE; NULL is not."""
        return self._delete(name, where, transaction, options)

    def update(
        self,
        name: str,
        set: Mapping[str, object],
        where: str | None = None,
        *,
        transaction: Transaction | None = None,
        **options: Unpack[CommitOptions],
    ) -> Commit | None:
        """Give columns new values where the condition is TRUE, both in Spark's SQL."""
        return self._update(name, set, where, transaction, options)

    def merge(
        self,
        name: str,
        source: object,
        on: str,
        *,
        target_alias: str = "t",
        source_alias: str = "s",
        transaction: Transaction | None = None,
    ) -> Merge[Commit | None]:
        """Merge a DataFrame by clauses, whose conditions and values are in Spark's SQL.

        `merge("a.t", frame, "t.id = s.id").when_matched_update_all().execute()`. The source is
        computed once.
        """
        aliases = to_aliases(target_alias, source_alias)
        matching = spark_matching(on, aliases, is_utc=self._is_utc)
        rows = SparkSource(self._bench, source)

        def run(clauses: tuple[Clause, ...], options: CommitOptions) -> Commit | None:
            return self._change(
                "merge",
                name,
                lambda changer: changer.merge(rows.taken(changer), matching, clauses),
                source=rows,
                transaction=transaction,
                options=options,
                request=("merge", on, aliases, *map(str, clauses)),
            )

        return Merge(run, spark_values)

    def upsert(
        self,
        frame: object,
        name: str,
        *,
        key: str | Sequence[str] | None = None,
        transaction: Transaction | None = None,
        **options: Unpack[CommitOptions],
    ) -> Commit | None:
        """Update the rows whose key the DataFrame has, and insert the others.

        `key` is the primary key unless given.
        """
        rows = SparkSource(self._bench, frame)
        return self._change(
            "merge",
            name,
            lambda changer: changer.upsert(rows, key),
            source=rows,
            transaction=transaction,
            options=options,
            request=("upsert", *(() if key is None else (key,))),
        )

    def _delete(
        self,
        name: str,
        where: str,
        transaction: Transaction | None,
        options: CommitOptions,
        *,
        alias: str | None = None,
    ) -> Commit | None:
        condition = self._condition(where)
        return self._change(
            "delete",
            name,
            lambda changer: changer.delete(condition),
            transaction=transaction,
            options=options,
            request=(where,),
            alias=alias,
        )

    def _update(
        self,
        name: str,
        set: Mapping[str, object],
        where: str | None,
        transaction: Transaction | None,
        options: CommitOptions,
        *,
        alias: str | None = None,
    ) -> Commit | None:
        values = spark_values(set)
        condition = None if where is None else self._condition(where)
        return self._change(
            "update",
            name,
            lambda changer: changer.update(values, condition),
            transaction=transaction,
            options=options,
            request=(sorted(values.items()), where),
            alias=alias,
        )

    def _change(
        self,
        operation: str,
        name: str,
        stage: Stage,
        *,
        transaction: Transaction | None,
        options: CommitOptions,
        request: tuple[object, ...],
        alias: str | None = None,
        source: SparkSource | None = None,
    ) -> Commit | None:
        bench = self._bench

        def staged(table: TransactionTable) -> RowCounts:
            for _ in range(_LOSSES):
                try:
                    return stage(SparkChanger(bench, table.rows(alias=alias)))
                except ExecutorLost:  # nothing is staged yet
                    if source is not None:
                        source.forget()
            return stage(SparkChanger(bench, table.rows(alias=alias)))

        if transaction is not None:
            staged(self._staged(transaction, name, options))
            return None
        return self._table(name).change(operation, options, staged, request)

    def _condition(self, where: object) -> Condition:
        return spark_condition(where, is_utc=self._is_utc)

    @property
    def _is_utc(self) -> bool:
        """Texts of times mean in Spark what the session's time zone makes of them."""
        return self._session.conf.get("spark.sql.session.timeZone") in UTC

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
