"""One DuckDB connection, in which plans are relations and nothing else can be read.

Files are opened to it before its first statement; after that its configuration is locked.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar
from uuid import uuid4

import duckdb
import pyarrow as pa

from lakebed.core.plan import Plan
from lakebed.engines.arrow.footer import leaf_names
from lakebed.engines.arrow.metadata import STORED
from lakebed.engines.duckdb.dataset import PlanRows, PlanSource
from lakebed.engines.duckdb.errors import Text, translated
from lakebed.engines.duckdb.instance import Instance, Limits
from lakebed.engines.duckdb.pool import Pool
from lakebed.engines.duckdb.relation import (
    Relation,
    Writer,
    cast_columns,
    columns_of,
    empty_select,
    rest_select,
)
from lakebed.engines.duckdb.results import arrow_schema, as_schema, casts
from lakebed.engines.duckdb.waiting import interruptible
from lakebed.model.errors import LakebedError, SqlUnsupported
from lakebed.model.files import LiveFile
from lakebed.model.quoting import quoted, text_literal
from lakebed.model.schema import Schema
from lakebed.storage.base import Storage
from lakebed.storage.local import LocalStorage

T = TypeVar("T")
_Given = list[object] | dict[str, object] | None
Parameters = Sequence[object] | Mapping[str, object]
_BATCH_ROWS = 122_880  # sixty vectors of DuckDB
_SMALL_ROWS = 8192  # to join batches below this costs less than to hand on each
_MOST_FOOTERS = 1000
_MOST_TYPED = 1000
_GLOB = frozenset("*?[")  # DuckDB would look for other files
_BITS = "CAST(CAST(? AS BLOB) AS BIT)"
_ANALYZE = re.compile(r"\s*EXPLAIN\s*\(?\s*ANALYZE\b", re.IGNORECASE)


class Session:
    """Not for several threads, except `interrupt`."""

    def __init__(
        self,
        storage: Storage,
        limits: Limits,
        *,
        roots: Sequence[str] = (),
        pool: Pool | None = None,
    ) -> None:
        """`roots` are of tables whose plans may be bound after the first statement, too.

        With a pool they are those of all plans, and the session is for one query, which must be
        known to read what is bound to it alone: a shared instance may read other tables as well.
        """
        self._storage = storage
        self._roots = {root: folder for root in roots if (folder := self._folder(root))}
        self._pool = pool
        self._instance = self._chosen(limits)
        self._connection = self._instance.connect()
        self._is_done = True  # is nothing under way?
        self._is_closed = False
        self._bound: dict[str, tuple[Plan, tuple[str, ...]]] = {}
        self._bits: dict[str, bytes] = {}  # by the names of variables
        self._sources = 0
        self._failure: LakebedError | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self._connection.close()
        if self._pool is not None and self._is_done:
            self._pool.give(self._instance)
        else:
            self._instance.close()

    def interrupt(self) -> None:
        """Stop what runs, from any thread."""
        self._connection.interrupt()

    def bind_plan(self, name: str, plan: Plan, *, metadata: tuple[str, ...] = ()) -> None:
        """A relation with the plan's rows and columns, then those of `metadata`.

        A plan without columns is a relation with one column of nulls, called `_`.
        """
        self._is_done = False
        self._open_root(plan.root)
        self._bound[name] = plan, metadata
        with translated(Text("")):
            self._bind(name, plan, metadata, vectors=True)

    def bind_rows(
        self, name: str, rows: pa.Table | pa.RecordBatchReader | list[pa.RecordBatch]
    ) -> None:
        """A relation with these rows; those of a reader can be read once."""
        self._is_done = False
        given = pa.Table.from_batches(rows) if isinstance(rows, list) else rows
        with translated(Text("")):
            self._connection.register(name, given)

    def bind_batch(self, name: str, batch: pa.RecordBatch, schema: Schema) -> None:
        """A relation with rows of a table, in the types that its plans have here."""
        source = f"{name}_rows"
        self.bind_rows(source, [batch])
        listed = ", ".join(cast_columns(schema, batch.schema.names))
        select = f"SELECT {listed} FROM {quoted(source)}"
        self.run(f"CREATE OR REPLACE TEMP VIEW {quoted(name)} AS {select}")

    def parsed(self, sql: str) -> str:
        """The tree of a statement as JSON, as DuckDB parses it; nothing is run."""
        text = f"SELECT json_serialize_sql({text_literal(sql)})"
        with translated(Text(sql)):
            ((tree,),) = self._connection.execute(text).fetchall()  # no result may stay open
        return str(tree)

    def run(self, sql: str, parameters: Parameters = ()) -> None:
        """A statement of ours, such as CREATE TEMP TABLE."""
        self._lock()
        with self._failures(Text(sql)):
            self._wait(lambda: self._connection.execute(sql, _given(parameters)))

    def batches(self, sql: str, parameters: Parameters = ()) -> pa.RecordBatchReader:
        """The rows of one query, as a stream."""
        self._lock()
        if self._check_query(sql) == "EXPLAIN":
            return self._explained(sql, parameters)
        given = _given(parameters)
        with self._failures(Text(sql)):
            relation = self._relation(sql, given)
            types = relation.types
        text, listed = Text(sql), casts(relation.columns, types)
        if listed is not None:
            text = Text(f"SELECT {listed} FROM (\n{sql}\n)", lines_before=1)
        with self._failures(text):
            if listed is not None:
                relation = self._connection.sql(text.sql, params=given)
            reader = self._wait(lambda: relation.to_arrow_reader(_BATCH_ROWS))
        schema = reader.schema if listed is None else arrow_schema(types, reader.schema)
        return pa.RecordBatchReader.from_batches(schema, self._streamed(reader, schema, text))

    def _relation(self, sql: str, given: _Given) -> duckdb.DuckDBPyRelation:
        """A refusal tells its place in the text only when a statement is run."""
        try:
            return self._wait(lambda: self._connection.sql(sql, params=given))
        except duckdb.Error as error:
            if "\n\nLINE " in str(error):
                raise
            with translated(Text(f"EXPLAIN\n{sql}", lines_before=1)):
                self._connection.execute(f"EXPLAIN\n{sql}", given)
            raise

    def _streamed(
        self, reader: pa.RecordBatchReader, schema: pa.Schema, text: Text
    ) -> Iterator[pa.RecordBatch]:
        while True:
            with self._failures(text):
                batches = self._wait(lambda: _taken(reader))
            if not batches:
                self._is_done = True
                return
            for batch in batches:
                yield batch if reader.schema is schema else as_schema(batch, schema)

    def _wait(self, call: Callable[[], T]) -> T:
        return interruptible(call, self._connection.interrupt)

    def _chosen(self, limits: Limits) -> Instance:
        if self._pool is None:
            return Instance(limits)
        needed = frozenset(self._roots.values())
        instance = self._pool.take(limits, needed)
        if instance is None:
            instance = Instance(limits)
            instance.lock(self._pool.folders(needed))
        return instance

    def _folder(self, root: str) -> str | None:
        """As DuckDB compares it: the one that links lead to. None if DuckDB cannot read it."""
        if not isinstance(self._storage, LocalStorage):
            return None
        return Path(self._storage.location(root)).resolve().as_posix()

    def _open_root(self, root: str) -> None:
        if self._instance.folders is not None or root in self._roots:
            return
        folder = self._folder(root)
        if folder is not None:
            self._roots[root] = folder

    def _lock(self) -> None:
        self._is_done = False
        if self._instance.folders is None:
            self._instance.lock(self._roots.values())

    def _bind(self, name: str, plan: Plan, metadata: tuple[str, ...], *, vectors: bool) -> None:
        writer = Writer(
            plan,
            metadata,
            locate=self._located(plan),
            keep=self._keep,
            keep_paths=self._keep_paths,
            stored=self._storing(plan),
            vectors=vectors,
        )
        relation = writer.write()
        self._create_view(name, plan, metadata, relation)
        if not self._has_types(name, columns_of(plan, metadata), relation):
            # The first file holds other types than the table; then each file is told ours.
            self._create_view(name, plan, metadata, writer.write(mapped=True))

    def _has_types(self, name: str, columns: Sequence[tuple[str, str]], relation: Relation) -> bool:
        """To ask for types takes as long as to make the view, and files do not change."""
        known = (relation.firsts, tuple(columns))
        if not columns or not relation.firsts or known in self._instance.typed:
            return True
        found = self._connection.sql(f"SELECT * FROM {quoted(name)}").types
        names = {kind: str(self._connection.sqltype(kind)) for kind in {k for _, k in columns}}
        if [str(kind) for kind in found] != [names[kind] for _, kind in columns]:
            return False
        if len(self._instance.typed) >= _MOST_TYPED:
            self._instance.typed.clear()
        self._instance.typed.add(known)
        return True

    def _located(self, plan: Plan) -> Callable[[LiveFile], str | None]:
        folder = self._roots.get(plan.root)

        def locate(live: LiveFile) -> str | None:
            path = None if folder is None else f"{folder}/{live.file.path}"
            return None if path is None or _GLOB & set(path) else path

        return locate

    def _storing(self, plan: Plan) -> Callable[[LiveFile], bool]:
        """Of few files the footers tell; to open many takes longer than it can save."""
        if len(plan.files) > _MOST_FOOTERS:
            return lambda _: True

        def stored(live: LiveFile) -> bool:
            names = leaf_names(self._storage, f"{plan.root}/{live.file.path}")
            return not names.isdisjoint(STORED)

        return stored

    def _create_view(
        self, name: str, plan: Plan, metadata: tuple[str, ...], relation: Relation
    ) -> None:
        selects = list(relation.selects)
        if relation.rest:
            self._sources += 1
            source = f"lakebed_source_{self._sources}"
            about = metadata if plan.columns or metadata else ("_pos",)  # one column is needed
            rows = PlanRows(plan, relation.rest, self._storage, about, self._failed)
            self._connection.register(source, PlanSource(rows))
            selects.append(rest_select(source, plan, metadata))
        if not selects:
            selects = [empty_select(columns_of(plan, metadata))]
        union = "\nUNION ALL ".join(selects)
        self._connection.execute(f"CREATE OR REPLACE TEMP VIEW {quoted(name)} AS {union}")

    def _failed(self, error: LakebedError) -> None:
        self._failure = error

    def _keep(self, bits: bytes) -> str:
        """Bits stay outside of the text of views: they are large."""
        name = f"lakebed_{uuid4().hex}"
        self._connection.execute(f"SET VARIABLE {name} = {_BITS}", [bits])
        self._bits[name] = bits
        return f"getvariable('{name}')"

    def _keep_paths(self, paths: list[str]) -> str:
        name = f"lakebed_{uuid4().hex}"
        self._connection.execute(f"SET VARIABLE {name} = ?", [paths])
        return f"getvariable('{name}')"

    def _check_query(self, sql: str) -> str:
        with translated(Text(sql)):
            statements = self._connection.extract_statements(sql)
        kinds = [statement.type.name for statement in statements]
        is_pivot = kinds == ["MULTI"] and "pivot" in sql.lower()  # first it looks at the values
        if is_pivot:
            return "SELECT"
        if len(kinds) != 1 or kinds[0] not in ("SELECT", "EXPLAIN"):
            raise SqlUnsupported(
                f"one query is expected here, not {', '.join(kinds) or 'nothing'}",
                hint="write one SELECT",
            )
        return str(kinds[0])

    def _explained(self, sql: str, parameters: Parameters) -> pa.RecordBatchReader:
        """A plan shows its constants, so that bits must not be among them."""
        analyzed = _ANALYZE.match(sql) is not None
        for name, (plan, metadata) in self._bound.items():
            if analyzed and plan.deleted:
                self._bind(name, plan, metadata, vectors=False)
        for name in self._bits:
            self._connection.execute(f"SET VARIABLE {name} = CAST('0' AS BIT)")
        with self._failures(Text(sql)):
            rows = self._wait(lambda: self._connection.execute(sql, _given(parameters)).fetchall())
        for name, bits in self._bits.items():
            self._connection.execute(f"SET VARIABLE {name} = {_BITS}", [bits])
        keys, values = zip(*rows, strict=True)
        table = pa.table({"explain_key": keys, "explain_value": values})
        return table.to_reader()

    @contextmanager
    def _failures(self, text: Text) -> Iterator[None]:
        """Errors of our own reader come back as they were."""
        self._failure = None
        try:
            with translated(text):
                yield
        except LakebedError as error:
            if self._failure is None:
                raise
            raise self._failure from error


def _taken(reader: pa.RecordBatchReader) -> list[pa.RecordBatch]:
    """The next rows, few enough for memory; files of few rows would give as many small batches."""
    taken: list[pa.RecordBatch] = []
    rows = 0
    while rows < _BATCH_ROWS and (batch := next(reader, None)) is not None:
        taken.append(batch)
        rows += batch.num_rows
    if len(taken) < 2 or rows > len(taken) * _SMALL_ROWS:
        return taken
    joined: list[pa.RecordBatch] = pa.Table.from_batches(taken).combine_chunks().to_batches()
    return joined


def _given(parameters: Parameters) -> _Given:
    if isinstance(parameters, Mapping):
        return dict(parameters) or None
    return list(parameters) or None
