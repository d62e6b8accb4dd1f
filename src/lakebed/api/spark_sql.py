"""SQL on Spark: queries over the lake's tables at one set of versions, and changes of rows."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

from lakebed.api.merge import to_aliases
from lakebed.api.options import CommitOptions
from lakebed.api.spark_query import read_query, run_query
from lakebed.api.spark_rows import SparkRows
from lakebed.api.spark_writes import SparkWrites
from lakebed.api.transaction import Transaction
from lakebed.model.errors import SchemaMismatch
from lakebed.model.history import Commit
from lakebed.model.schema import Schema
from lakebed.sql.spark_query import with_names
from lakebed.sql.spark_statements import Delete, Insert, Merge, Update, parse_spark_statement
from lakebed.sql.statements import Target

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class SparkSql(SparkWrites):
    def sql(
        self,
        text: str,
        *,
        transaction: Transaction | None = None,
        **options: Unpack[CommitOptions],
    ) -> Any:
        """A query gives a DataFrame; INSERT, UPDATE, DELETE and MERGE give a Commit, or are staged.

        The language is Spark's. `namespace.table`s of the lake are read at one set of versions;
        `VERSION AS OF 3`, `VERSION AS OF 'tag'` and `TIMESTAMP AS OF '…'` choose others. Views and
        tables that only Spark knows can be named too.
        """
        statement = parse_spark_statement(text)
        match statement:
            case None:
                return self._frame(text, transaction)
            case Insert():
                return self._insert(statement, transaction, options)
            case Update(target, values, where):
                return self._update(
                    _name(target), values, where, transaction, options, alias=target.alias
                )
            case Delete(target, where):
                condition = "true" if where is None else where
                return self._delete(
                    _name(target), condition, transaction, options, alias=target.alias
                )
            case Merge():
                return self._merge(statement, transaction, options)

    def _merge(
        self, statement: Merge, transaction: Transaction | None, options: CommitOptions
    ) -> Commit | None:
        aliases = to_aliases(statement.target.alias, statement.alias)
        merge = self.merge(
            _name(statement.target),
            self._frame(statement.source, transaction),
            statement.on,
            target_alias=aliases.target,
            source_alias=aliases.source,
            transaction=transaction,
        )
        return merge.having(statement.clauses).execute(**options)

    def _insert(
        self, statement: Insert, transaction: Transaction | None, options: CommitOptions
    ) -> Commit | None:
        name = _name(statement.target)
        given = self._frame(statement.source, transaction)
        if not statement.by_name:
            schema = self._schema(name, transaction)
            given = given.toDF(*_columns(schema, statement.columns, len(given.columns)))
        rows = replace(self._rows(given), rounds=True)
        return self._placed(rows, name, statement.overwrite, transaction, options)

    def _placed(
        self,
        rows: SparkRows,
        name: str,
        overwrite: bool,
        transaction: Transaction | None,
        options: CommitOptions,
    ) -> Commit | None:
        if transaction is not None:
            table = self._staged(transaction, name, options)
            table.overwrite(rows) if overwrite else table.append(rows)
            return None
        target = self._table(name)
        return target.overwrite(rows, **options) if overwrite else target.append(rows, **options)

    def _schema(self, name: str, transaction: Transaction | None) -> Schema:
        return self._table(name).schema if transaction is None else transaction.table(name).schema

    def _frame(self, query: str, transaction: Transaction | None) -> "DataFrame":
        if transaction is None:
            return run_query(self._parts, self._session, query)
        read = read_query(self._parts, self._session, query)
        plans = [transaction.table(each.name).scan().plan() for each in read.tables]
        frames = [self._bench.read(plan) for plan in plans]
        names = [f"t{number}" for number in range(len(frames))]
        return self._bench.query(list(with_names(read.text, read.tables, names)), frames)


def _name(target: Target) -> str:
    return f"{target.name}@{target.branch}" if target.branch else str(target.name)


def _columns(schema: Schema, named: Sequence[str] | None, given: int) -> list[str]:
    """The columns that rows go into by their places."""
    columns = [f.name for f in schema.fields] if named is None else list(named)
    if len(columns) != given:
        raise SchemaMismatch(
            f"{given} columns are given for {len(columns)}: {', '.join(columns)}",
            hint="name the columns that are given, or write INSERT INTO t BY NAME",
        )
    return columns
