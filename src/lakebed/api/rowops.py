"""Changes of rows in a transaction: each is planned on what the transaction sees, and staged."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

import pyarrow as pa

from lakebed.api.engine import open_engine
from lakebed.api.parts import Parts
from lakebed.api.staging import PositionsById, Staged
from lakebed.api.writing import write_rows
from lakebed.model.counts import RowCounts
from lakebed.model.errors import InvalidExpression, InvalidInput, SchemaMismatch
from lakebed.model.expressions import Predicate
from lakebed.model.files import DataFile, LiveFile
from lakebed.model.names import parse_table_name
from lakebed.model.partitioning import PartitionSpec
from lakebed.rowops.clause import Aliases, Clause
from lakebed.rowops.condition import Condition
from lakebed.rowops.delete import count_unmatched, delete, truncate
from lakebed.rowops.literal import value_to_sql
from lakebed.rowops.merge import merge
from lakebed.rowops.policy import Policy
from lakebed.rowops.source import Source
from lakebed.rowops.target import Target
from lakebed.rowops.update import update
from lakebed.rowops.workbench import Prepare, Workbench
from lakebed.sql.predicate import parse_known_part, parse_predicate
from lakebed.sql.sieve import parse_sieve, plain_sieve


@dataclass(frozen=True, slots=True)
class RowChanger:
    """`visible` and `specs` are those of the transaction's table."""

    parts: Parts
    name: str
    staged: Staged
    visible: Callable[[Predicate | None], list[LiveFile]]
    specs: Callable[[], dict[int, PartitionSpec]]
    prepare: Prepare | None = None  # makes relations that subqueries look at
    alias: str | None = None  # what expressions call the table; its own name when None

    def delete(self, condition: Condition) -> RowCounts:
        with self._bench() as bench:
            change = delete(self.target("delete"), condition, bench)
        self.staged.change_rows(change, "delete")
        return change.counts

    def clear(self, condition: Condition, inserted: int) -> None:
        """Make room for rows that take the place of those that match."""
        with self._bench() as bench:
            change = delete(self.target("delete"), condition, bench)
        counts = change.counts + RowCounts(inserted_rows=inserted)
        self.staged.take_rows(replace(change, counts=counts))

    def refuse_unmatched(self, files: Sequence[DataFile], condition: Condition) -> None:
        """Files written for an overwrite may only hold rows that match its condition."""
        with self._bench() as bench:
            if count_unmatched(self.target("delete"), files, condition, bench):
                raise SchemaMismatch(
                    "some rows do not match the condition of this overwrite",
                    hint="an overwrite with `where` may only write rows that match it",
                )

    def truncate(self) -> RowCounts:
        change = truncate(self.target("delete"))
        self.staged.change_rows(change, "truncate")
        return change.counts

    def update(self, values: Mapping[str, str], condition: Condition | None) -> RowCounts:
        with self._bench() as bench:
            change = update(self.target("update"), values, condition, bench)
        self.staged.change_rows(change, "update")
        return change.counts

    def merge(
        self,
        bench: Workbench,
        source: Source,
        on: Condition,
        clauses: Sequence[Clause],
        *,
        aliases: Aliases,
    ) -> RowCounts:
        target = self.target("merge")
        change = merge(target, source, on, clauses, aliases=aliases, bench=bench)
        self.staged.change_rows(change, "merge")
        return change.counts

    def _bench(self) -> Workbench:
        return open_bench(self.parts, self.prepare, (self.staged.head.location,))

    def target(self, operation: str) -> Target:
        """The table as the transaction sees it, for an operation with its own write mode."""
        staged, parts = self.staged, self.parts
        policy, had_row_ids = self._policy(operation), staged.state.iceberg_version >= 3
        upgrades = not had_row_ids and operation != "delete" and not policy.copy_on_write
        has_row_ids = had_row_ids or upgrades

        def visible(where: Predicate | None) -> list[LiveFile]:
            live = self.visible(where)
            return parts.planner.with_row_ids(staged.head, live) if upgrades else live

        def positions(files: Sequence[LiveFile]) -> PositionsById:
            return staged.positions(files, lambda base: parts.planner.positions(staged.head, base))

        def write(batches: Iterable[pa.RecordBatch]) -> list[DataFile]:
            return write_rows(parts, staged.head, staged.state, batches, lineage=has_row_ids)

        return Target(
            name=self.alias or parse_table_name(self.name).name,
            root=staged.head.location,
            version=staged.head.version,
            state=staged.state,
            visible=visible,
            specs=cache(self.specs),  # with the files, where those are asked for first
            storage=parts.storage,
            policy=policy,
            positions=positions,
            write=write,
            has_row_ids=has_row_ids,
        )

    def _policy(self, operation: str) -> Policy:
        state = self.staged.state

        def value(name: str) -> str | int | float:
            return self.parts.settings.value(name, state.properties)

        stays = state.iceberg_version < 3 and value("lakebed.upgrade") == "never"
        return Policy(
            copy_on_write=stays or value(f"write.{operation}.mode") == "copy-on-write",
            rewrite_above=float(value("write.rewrite-above")),
            rewrite_max_bytes=int(value("write.rewrite-max-bytes")),
        )


def open_bench(
    parts: Parts, prepare: Prepare | None = None, roots: Sequence[str] = ()
) -> Workbench:
    """`roots` are of the tables that will be bound."""
    return Workbench(partial(open_engine, parts, roots), prepare)


def to_condition(where: object) -> Condition:
    """A condition in SQL: by our own means where they suffice, else by the engine."""
    if not isinstance(where, str) or not where.strip():
        raise InvalidExpression(
            f"the condition is no SQL text: {where!r}", hint="write it as in WHERE: 'id = 5'"
        )
    plain = plain_sieve(where)
    if plain is not None:
        return Condition(where, None, is_exact=False, sieve=plain)
    try:
        return Condition(where, parse_predicate(where), is_exact=True)
    except InvalidExpression:
        known, sieve = parse_known_part(where), parse_sieve(where)
        return Condition(where, known, is_exact=False, sieve=sieve)


def to_values(given: object) -> dict[str, str]:
    """Columns and what they become: text is SQL, other values of Python stand for themselves."""
    if not isinstance(given, Mapping) or not given:
        raise InvalidInput("no column is set", hint='give {"column": "expression"}')
    return {name: value_to_sql(name, value) for name, value in given.items()}
