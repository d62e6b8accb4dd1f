"""MERGE: the table is joined with a source, and clauses say what becomes of each row.

Only the columns that the join and the conditions need are read first; the rows that change are
found by file and position, and their other columns are read only where an expression wants them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from lakebed.engines.arrow.conform import conform
from lakebed.engines.arrow.types import to_arrow
from lakebed.model.errors import AmbiguousMerge, InvalidInput, SchemaMismatch
from lakebed.model.expressions import TRUE, And, Predicate
from lakebed.model.files import LiveFile
from lakebed.model.quoting import quoted
from lakebed.model.schema import Schema
from lakebed.rowops.assign import Assignments, parse_assignments, projected
from lakebed.rowops.change import RowChange
from lakebed.rowops.clause import Aliases, Clause, When
from lakebed.rowops.condition import Condition
from lakebed.rowops.delete import PLACE
from lakebed.rowops.found import Found
from lakebed.rowops.keys import Key, KeyValues, key_values, keys_of, source_values
from lakebed.rowops.known import of_alias
from lakebed.rowops.rows import ROW_ID, fitted, refuse_misfits
from lakebed.rowops.settle import Tally, settle
from lakebed.rowops.source import Source
from lakebed.rowops.target import Target
from lakebed.rowops.workbench import Expression, Workbench, unused

_CHANGING = ("update", "replace")


@dataclass(frozen=True, slots=True)
class _Clause:
    """A clause whose expressions are checked; `number` counts those of its kind from 1."""

    when: When
    action: str
    number: int
    condition: Expression | None
    assigned: Assignments | None  # None: all columns, by name


def merge(
    target: Target,
    source: Source,
    on: Condition,
    clauses: Sequence[Clause],
    *,
    aliases: Aliases,
    bench: Workbench,
) -> RowChange:
    """One change, whatever the number of clauses and rows."""
    joined = bench.expression(on.text, "ON")
    ready = _checked(clauses, target.schema, source, bench)
    keys = keys_of(joined, target.schema, source, aliases)
    if any(c.when is When.BY_SOURCE for c in ready):
        files, reads = every_file(target)
    else:
        files, reads = _files(target, source, keys, on, aliases=aliases, bench=bench)
    job = _Job(target, source, files, aliases=aliases, bench=bench, clauses=ready)
    job.find(joined, keys)
    change = settle(
        target, job.found.by_file(), new_rows=job.new_rows(), reads=reads, counts=job.tally
    )
    job.drop()
    return change


def _files(
    target: Target,
    source: Source,
    keys: Sequence[Key],
    on: Condition,
    *,
    aliases: Aliases,
    bench: Workbench,
) -> tuple[list[LiveFile], Predicate]:
    """Files that can hold a match, by the key values of the source and by what ON says itself."""
    values = key_values(keys, target.schema, partial(source_values, bench, source))
    return files_to_match(target, values, on, aliases)


def files_to_match(
    target: Target, values: Sequence[KeyValues], on: Condition, aliases: Aliases
) -> tuple[list[LiveFile], Predicate]:
    """Files in which a row can match, and what is TRUE for every row that does."""
    said = of_alias(on, aliases.target).bound(target.schema)
    known = [v.predicate for v in values] + ([said] if said is not None else [])
    if not known:
        return every_file(target)
    reads = And(tuple(known))
    near = target.candidates(And((*(v.listed for v in values), reads)))
    files = [f for f in near if all(v.may_be_in(target, f) for v in values)]
    if said is not None:
        files = [f for f in files if target.may_hold(said, f)]
    return files, reads


def every_file(target: Target) -> tuple[list[LiveFile], Predicate]:
    return target.kept(None), TRUE


def _checked(
    clauses: Sequence[Clause], schema: Schema, source: Source, bench: Workbench
) -> list[_Clause]:
    if not clauses:
        raise InvalidInput(
            "the merge has no clause", hint="add one, such as when_matched_update_all()"
        )
    ready: list[_Clause] = []
    for clause in clauses:
        what = f"WHEN {clause.when.value}"
        condition = None
        if clause.condition is not None:
            condition = bench.expression(clause.condition, f"the condition of {what}")
        assigned = None
        if clause.values is not None:
            assigned = parse_assignments(bench, schema, clause.values, f"{what} THEN")
        elif clause.action != "delete":
            refuse_other_columns(schema, source.columns, what)
        number = 1 + sum(c.when is clause.when for c in ready)
        ready.append(_Clause(clause.when, clause.action, number, condition, assigned))
    return ready


def refuse_other_columns(schema: Schema, given: Sequence[str], what: str) -> None:
    """All columns by name means all: none may be missing on either side."""
    ours, theirs = {f.name.casefold() for f in schema.fields}, {c.casefold() for c in given}
    missing = [f.name for f in schema.fields if f.name.casefold() not in theirs]
    extra = [c for c in given if c.casefold() not in ours]
    if missing or extra:
        raise SchemaMismatch(
            f"{what} takes all columns by name, but the source "
            + (f"lacks {', '.join(missing)}" if missing else f"has {', '.join(extra)} beside them"),
            hint="name the columns to set, or make the source's columns those of the table",
            column=(missing or extra)[0],
        )


class _Job:
    def __init__(
        self,
        target: Target,
        source: Source,
        files: Sequence[LiveFile],
        *,
        aliases: Aliases,
        bench: Workbench,
        clauses: Sequence[_Clause],
    ) -> None:
        self.found = Found(files)
        self.tally = Tally(scanned_files=len(files))
        self._target, self._source, self._bench = target, source, bench
        self._aliases, self._files = aliases, files
        self._clauses = {when: [c for c in clauses if c.when is when] for when in When}
        self._t, self._s = quoted(aliases.target), quoted(aliases.source)
        self._about = (*PLACE, ROW_ID) if target.lineage else PLACE
        self._pairs, self._alone = bench.name("pairs"), bench.name("alone")
        known = (*(f.name for f in target.schema.fields), *source.columns)
        taken = (*known, aliases.target, aliases.source)
        self._pair, self._moved = (unused(f"_lakebed_{n}", taken) for n in ("pair", "moved"))
        self._from, self._by = (unused(f"_lakebed_{n}", taken) for n in ("from", "by"))
        self._row, self._met = f"{self._s}.{source.row}", f"{self._pair}.{self._from}"
        self._old, self._new = (unused(f"_lakebed_{n}", taken) for n in ("old", "new"))

    def find(self, on: Expression, keys: Sequence[Key]) -> None:
        """Which rows of the table meet which of the source, and which clause acts on them."""
        relation = self._bench.bind(self._target.plan(self._files), self._about)
        self._check(on, f"{relation} AS {self._t}")
        matched = self._clauses[When.MATCHED]
        self._bench.run(
            f"CREATE TEMP TABLE {self._pairs} AS SELECT {self._columns_about()},"
            f" {self._row} AS {self._from}, {_chosen(matched)} AS {self._by}"
            f" FROM {relation} AS {self._t}"
            f" JOIN {self._source.relation} AS {self._s} ON {on.sql}"
        )
        self._refuse_ambiguous(keys)
        self._count(self._pairs, matched)
        alone = self._clauses[When.BY_SOURCE]
        if alone:
            self._bench.run(
                f"CREATE TEMP TABLE {self._alone} AS SELECT * FROM (SELECT {self._columns_about()},"
                f" {_chosen(alone)} AS {self._by} FROM {relation} AS {self._t}"
                f" WHERE NOT EXISTS (SELECT 1 FROM {self._pairs} AS {self._pair} WHERE"
                f" {self._pair}._file = {self._t}._file AND {self._pair}._pos = {self._t}._pos))"
                f" WHERE {self._by} > 0"
            )
            self._count(self._alone, alone)

    def _check(self, on: Expression, target: str) -> None:
        """Conditions and values, whether there are rows for them or not."""
        source = f"{self._source.relation} AS {self._s}"
        places = {
            When.MATCHED: f"{target}, {source}",
            When.NOT_MATCHED: source,
            When.BY_SOURCE: target,
        }
        self._bench.refuse_no_condition([on], places[When.MATCHED])
        for when, relations in places.items():
            tests = [c.condition for c in self._clauses[when] if c.condition is not None]
            self._bench.refuse_no_condition(tests, relations)
            for clause in self._clauses[when]:
                if clause.assigned is not None:
                    refuse_misfits(self._bench, self._target, clause.assigned, relations)
                elif clause.action != "delete":
                    self._refuse_other_types(clause)

    def _refuse_other_types(self, clause: _Clause) -> None:
        """All columns by name: types that can never fit, though no row may come."""
        listed = ", ".join(self._values(clause, quoted))
        source = f"{self._source.relation} AS {self._s}"
        shape = self._bench.shape(f"SELECT {listed} FROM {source} LIMIT 0")
        fields = tuple(replace(f, required=False) for f in self._target.schema.fields)
        none = pa.RecordBatch.from_pylist([], schema=shape)
        for _ in conform([none], replace(self._target.schema, fields=fields)):
            pass

    def drop(self) -> None:
        """A second attempt makes its own."""
        for relation in (self._pairs, self._alone):
            self._bench.run(f"DROP TABLE IF EXISTS {relation}")

    def new_rows(self) -> Iterator[pa.RecordBatch]:
        for relation, when in ((self._pairs, When.MATCHED), (self._alone, When.BY_SOURCE)):
            for clause in self._clauses[when]:
                if clause.action in _CHANGING:
                    yield from self._fitted(clause, self._updates(relation, clause))
        for clause in self._clauses[When.NOT_MATCHED]:
            for batch in self._fitted(clause, self._bench.batches(self._inserts(clause))):
                self.tally.inserted_rows += batch.num_rows
                yield batch

    def _fitted(
        self, clause: _Clause, batches: Iterator[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        schema = self._target.schema
        computed = clause.assigned.columns(schema) if clause.assigned else []
        return fitted(batches, self._target, computed)

    def _columns_about(self) -> str:
        return ", ".join(f"{self._t}.{name}" for name in self._about)

    def _count(self, relation: str, clauses: Sequence[_Clause]) -> None:
        """The rows that go, and how many by which action."""
        for batch in self._bench.batches(
            f"SELECT _file, _pos, {self._by} FROM {relation} WHERE {self._by} > 0"
        ):
            self.found.add(batch.column("_file"), batch.column("_pos"))
            counts = batch.column(self._by).value_counts()
            for number, rows in zip(*(counts.field(n).to_pylist() for n in (0, 1)), strict=True):
                if clauses[number - 1].action in _CHANGING:
                    self.tally.updated_rows += rows
                else:
                    self.tally.deleted_rows += rows

    def _refuse_ambiguous(self, keys: Sequence[Key]) -> None:
        """Two rows of the source that would change one row of the table."""
        twice = self._bench.row(
            f"SELECT min({self._from}) AS one, max({self._from}) AS other FROM {self._pairs}"
            f" WHERE {self._by} > 0 GROUP BY _file, _pos HAVING count(*) > 1 LIMIT 1"
        )
        if twice is None:
            return
        columns = [key.column for key in keys] or list(self._source.columns)
        listed = ", ".join(quoted(c) for c in columns)
        row = self._bench.row(
            f"SELECT {listed} FROM {self._source.relation} AS {self._s}"
            f" WHERE {self._row} = {twice['one']}"
        )
        shown = ", ".join(f"{name} = {value!r}" for name, value in (row or {}).items())[:500]
        raise AmbiguousMerge(
            f"rows {twice['one'] + 1} and {twice['other'] + 1} of the source match the same row of"
            f" the table: {shown}",
            hint="leave one row per key in the source, or narrow ON",
            rows=(twice["one"], twice["other"]),
        )

    def _updates(self, relation: str, clause: _Clause) -> Iterator[pa.RecordBatch]:
        wants_old = [False]

        def before(name: str) -> str:
            wants_old[0] = True
            return f"{self._t}.{quoted(name)}"

        listed = ", ".join(self._values(clause, before))
        if self._target.lineage:
            listed += f", {self._pair}.{ROW_ID}"
        sql = f"SELECT {listed} FROM {relation} AS {self._pair}"
        if clause.when is When.MATCHED:
            sql += f" JOIN {self._source.relation} AS {self._s} ON {self._row} = {self._met}"
        if wants_old[0] or self._looks_at_target(clause):
            sql += self._join_old(relation, clause)
        return self._bench.batches(f"{sql} WHERE {self._pair}.{self._by} = {clause.number}")

    def _join_old(self, relation: str, clause: _Clause) -> str:
        """The old rows with all their columns, of the files that have some to change."""
        touched: list[int] = []
        for batch in self._bench.batches(
            f"SELECT DISTINCT _file FROM {relation} WHERE {self._by} = {clause.number}"
        ):
            touched += batch.column(0).to_pylist()
        plan = self._target.plan([self._files[place] for place in touched])
        places = pa.table(
            {self._old: pa.array(touched, pa.int32()), self._new: pa.arange(0, len(touched))}
        )
        old, moved = self._bench.bind(plan, PLACE), self._bench.bind_rows(places)
        return (
            f" JOIN {moved} AS {self._moved} ON {self._moved}.{self._old} = {self._pair}._file"
            f" JOIN {old} AS {self._t} ON {self._t}._file = {self._moved}.{self._new}"
            f" AND {self._t}._pos = {self._pair}._pos"
        )

    def _values(self, clause: _Clause, before: Callable[[str], str]) -> list[str]:
        fields = self._target.schema.fields
        if clause.assigned is None:
            return [
                f"{self._s}.{quoted(self._source.find(f.name) or f.name)} AS {quoted(f.name)}"
                for f in fields
            ]
        assigned = clause.assigned
        whole = clause.action in ("insert", "replace")
        wanted = assigned.columns(self._target.schema) if whole else fields
        return [projected(f, assigned, partial(before, f.name)) for f in wanted]

    def _looks_at_target(self, clause: _Clause) -> bool:
        if clause.assigned is None:
            return False
        columns = {f.name.casefold() for f in self._target.schema.fields}
        ours, theirs = self._aliases.target.casefold(), self._aliases.source.casefold()
        names = [p[0].casefold() for e in clause.assigned.expressions.values() for p in e.columns]
        return any(name == ours or (name != theirs and name in columns) for name in names)

    def _inserts(self, clause: _Clause) -> str:
        """Rows of the source that match no row of the table."""
        empty: list[str] = []

        def before(name: str) -> str:
            if not empty:
                none = to_arrow(self._target.schema).empty_table()
                empty.append(self._bench.bind_rows(none))
            return f"(SELECT {quoted(name)} FROM {empty[0]})"

        listed = ", ".join(self._values(clause, before))
        chosen = _chosen(self._clauses[When.NOT_MATCHED])
        return (
            f"SELECT {listed} FROM {self._source.relation} AS {self._s} WHERE NOT EXISTS"
            f" (SELECT 1 FROM {self._pairs} AS {self._pair} WHERE {self._met} = {self._row})"
            f" AND {chosen} = {clause.number}"
        )


def _chosen(clauses: Sequence[_Clause]) -> str:
    """The number of the first clause whose condition is TRUE, else 0."""
    if not clauses:
        return "0"
    tried = " ".join(
        f"WHEN {c.condition.sql if c.condition else 'TRUE'} THEN {c.number}" for c in clauses
    )
    return f"CASE {tried} ELSE 0 END"
