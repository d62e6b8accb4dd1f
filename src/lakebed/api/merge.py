"""Merging rows into a table: by clauses, by the primary key, or from a change stream."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Generic, Self, TypeVar, Unpack

from lakebed.api.options import CommitOptions, check_names
from lakebed.api.rowops import RowChanger, to_values
from lakebed.api.sources import open_source
from lakebed.engines.arrow.batches import Batches
from lakebed.engines.arrow.conform import conform
from lakebed.engines.arrow.types import to_arrow
from lakebed.model.counts import RowCounts
from lakebed.model.errors import AmbiguousMerge, InvalidInput
from lakebed.model.names import is_text
from lakebed.model.schema import Schema
from lakebed.rowops.changes import (
    ALIASES,
    clauses_for,
    on_keys,
    operation_field,
    refuse_left_out,
    refuse_uneven,
    typed_changes,
)
from lakebed.rowops.clause import Aliases, Clause, When
from lakebed.rowops.condition import Condition
from lakebed.rowops.merge import refuse_other_columns
from lakebed.rowops.source import Source, last_of_each, repeated_key, spool
from lakebed.rowops.workbench import Workbench
from lakebed.sql.predicate import parse_known_part

R = TypeVar("R")
Clauses = tuple[Clause, ...]
ToValues = Callable[[object], dict[str, str]]


class Merge(Generic[R]):
    """Clauses are tried in the order they are given: the first whose condition is TRUE acts.

    Conditions and values are SQL; the table is called `t` and the source `s` unless told otherwise.
    """

    def __init__(
        self, run: Callable[[Clauses, CommitOptions], R], to_values: ToValues = to_values
    ) -> None:
        """`to_values` checks what columns become, and says it in the engine's SQL."""
        self._run = run
        self._to_values = to_values
        self._clauses: list[Clause] = []

    def when_matched_update(self, set: Mapping[str, object], condition: str | None = None) -> Self:
        return self._add(When.MATCHED, "update", condition, self._to_values(set))

    def when_matched_update_all(self, condition: str | None = None) -> Self:
        """Every column becomes the source's of the same name; both have the same columns."""
        return self._add(When.MATCHED, "update", condition)

    def when_matched_delete(self, condition: str | None = None) -> Self:
        return self._add(When.MATCHED, "delete", condition)

    def when_not_matched_insert(
        self, values: Mapping[str, object], condition: str | None = None
    ) -> Self:
        """Columns without a value get their default, or NULL."""
        return self._add(When.NOT_MATCHED, "insert", condition, self._to_values(values))

    def when_not_matched_insert_all(self, condition: str | None = None) -> Self:
        return self._add(When.NOT_MATCHED, "insert", condition)

    def when_not_matched_by_source_update(
        self, set: Mapping[str, object], condition: str | None = None
    ) -> Self:
        """For rows of the table that no row of the source matches: all of them are looked at."""
        return self._add(When.BY_SOURCE, "update", condition, self._to_values(set))

    def when_not_matched_by_source_delete(self, condition: str | None = None) -> Self:
        return self._add(When.BY_SOURCE, "delete", condition)

    def having(self, clauses: Clauses) -> Self:
        """Clauses that are made already, behind those there are."""
        self._clauses += clauses
        return self

    def execute(self, **options: Unpack[CommitOptions]) -> R:
        """Commit; in a transaction, stage."""
        return self._run(tuple(self._clauses), options)

    def _add(
        self,
        when: When,
        action: str,
        condition: str | None,
        values: Mapping[str, str] | None = None,
    ) -> Self:
        self._clauses.append(Clause(when, action, condition, values))
        return self


class MergeRows:
    """Rows to merge, taken into the engine once however often the merge is tried."""

    def __init__(self, bench: Workbench, rows: object) -> None:
        self._bench = bench
        self._rows = rows
        self._source: Source | None = None

    def merge(
        self, changer: RowChanger, on: Condition, clauses: Clauses, aliases: Aliases
    ) -> RowCounts:
        schema = changer.staged.state.schema
        source = self._spooled(schema, lambda: open_source(self._rows, schema))
        return changer.merge(self._bench, source, on, clauses, aliases=aliases)

    def upsert(
        self, changer: RowChanger, given_key: str | Sequence[str] | None = None
    ) -> RowCounts:
        schema = changer.staged.state.schema
        key = key_names(schema, given_key, changer.name)
        source = self._spooled(schema, lambda: self._whole_rows(schema, key))
        repeated = repeated_key(self._bench, source, key)
        if repeated is not None:
            shown = ", ".join(f"{name} = {value!r}" for name, value in repeated.items())
            raise AmbiguousMerge(f"several rows have the key {shown}", hint="leave one row per key")
        clauses = (Clause(When.MATCHED, "update"), Clause(When.NOT_MATCHED, "insert"))
        return changer.merge(self._bench, source, to_on(on_keys(key)), clauses, aliases=ALIASES)

    def apply_changes(
        self, changer: RowChanger, key: str | Sequence[str] | None, op_column: str
    ) -> RowCounts:
        schema = changer.staged.state.schema
        names = key_names(schema, key, changer.name)

        def opened() -> Batches:
            known = (*schema.fields, operation_field(op_column))
            left_out = partial(refuse_left_out, key=names, op=op_column)
            given = open_source(self._rows, replace(schema, fields=known), left_out)
            return typed_changes(given, schema, names, op_column)

        def last(source: Source) -> Source:
            return last_of_each(self._bench, source, names, op_column)

        source = self._spooled(schema, opened, last)
        clauses = clauses_for(source.columns, op_column)
        return changer.merge(self._bench, source, to_on(on_keys(names)), clauses, aliases=ALIASES)

    def _whole_rows(self, schema: Schema, key: Sequence[str]) -> Batches:
        given = open_source(self._rows, schema, refuse_uneven)
        refuse_other_columns(schema, given.schema.names, "upsert")
        keyed = tuple(replace(f, required=f.required or f.name in key) for f in schema.fields)
        return Batches(to_arrow(schema), conform(given, replace(schema, fields=keyed)))

    def _spooled(
        self,
        schema: Schema,
        opened: Callable[[], Batches],
        then: Callable[[Source], Source] = lambda s: s,
    ) -> Source:
        if self._source is None:
            batches = opened()
            beside = [f.name for f in schema.fields]
            self._source = then(spool(self._bench, batches.schema, batches, beside))
        return self._source


def to_on(on: object) -> Condition:
    if not isinstance(on, str) or not is_text(on) or not on.strip():
        raise InvalidInput(f"ON is no SQL text: {on!r}", hint='write on="t.id = s.id"')
    return Condition(on, parse_known_part(on), is_exact=False)


def to_aliases(target: object, source: object) -> Aliases:
    for alias in (target, source):
        if not isinstance(alias, str) or not is_text(alias) or not alias:
            raise InvalidInput(f"alias {alias!r} is no name", hint="use a short name")
    assert isinstance(target, str) and isinstance(source, str)
    if target.casefold() == source.casefold():
        raise InvalidInput("table and source have one alias", hint="give two different ones")
    return Aliases(target, source)


def key_names(schema: Schema, key: str | Sequence[str] | None, table: str) -> tuple[str, ...]:
    """The columns of a key as the table writes them; its primary key when none is given."""
    if key is None:
        names = tuple(schema.field(i).name for i in schema.primary_key)
        if not names:
            raise InvalidInput(
                f"table {table} has no primary key", hint="declare one, or use merge() with on="
            )
        return names
    found = []
    for name in (key,) if isinstance(key, str) else check_names("key", key):
        field = schema.find((name,))
        if field is None:
            raise InvalidInput(
                f"key column {name!r} is not in the table",
                hint=f"the columns are: {', '.join(f.name for f in schema.fields)}",
                column=name,
            )
        found.append(field.name)
    if not found:
        raise InvalidInput("the key has no column", hint="key=['id']")
    return tuple(found)
