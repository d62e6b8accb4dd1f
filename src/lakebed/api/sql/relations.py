"""Tables, views and metadata tables that a statement reads, all at one moment, for the engine."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lakebed.api.engine import open_engine
from lakebed.api.scan import to_time_ms
from lakebed.api.sql.bound import Bound
from lakebed.api.sql.context import Context, Values
from lakebed.api.sql.metadata import metadata_rows
from lakebed.api.txtable import TransactionTable
from lakebed.core.extremes import Answer, Wanted
from lakebed.core.plan import Plan
from lakebed.core.scan import pruned_plan
from lakebed.model.errors import InvalidInput, SqlError, SqlUnsupported, VersionNotFound
from lakebed.model.expressions import Predicate
from lakebed.model.history import TableHead
from lakebed.model.ids import Version
from lakebed.model.names import TableName
from lakebed.model.quoting import quoted, text_literal
from lakebed.model.schema import Schema
from lakebed.rowops.literal import literal
from lakebed.security.policy import require
from lakebed.sql.inline import inlined
from lakebed.sql.parse import parse_script
from lakebed.sql.places import unplaced
from lakebed.sql.query import Expression, Parameter, Reference, Select
from lakebed.sql.views import nested
from lakebed.sql.where import Doubt, doubts_of, where_of

if TYPE_CHECKING:
    from lakebed.engines.duckdb.session import Session

_WIDE = 50  # columns
_FAR = 2**63
_MOST_VIEWS = 100  # inside each other: more is a circle, or a mistake


class Relations:
    """`own` are tables as the statement that writes them sees them."""

    def __init__(
        self,
        context: Context,
        values: Values,
        own: Mapping[str, TransactionTable] | None = None,
    ) -> None:
        self._context = context
        self._values = values
        self._own = own or {}
        self._views = 0

    def bound(self, references: Iterable[Reference]) -> list[Bound]:
        """Views are opened first, so that all tables can be looked up together."""
        found: list[Bound] = []
        tables: list[Reference] = []
        for reference in references:
            self._sort(reference, self._context.namespace, found, tables)
        heads = self._heads(tables)
        for reference in tables:
            name = str(reference.name)
            require(self._context.parts.principal, "read", name)
            found.append(self._table(reference, heads.get(name)))
        return found

    def known(self, reference: Reference, wanted: Sequence[Wanted]) -> Answer | None:
        """Of a table as it is now: how many rows, and these values. None: it must be read."""
        if self._context.transaction is not None or _travels(reference):
            return None
        name = self._context.full(reference.name)
        if self._context.parts.views.find(name) is not None:
            return None
        require(self._context.parts.principal, "read", str(name))
        (head,) = self._context.parts.catalog.find_many([name])
        if not wanted:
            return Answer(head.live_rows, [])
        return self._context.parts.extremes.find(head.id, wanted)

    def _sort(
        self,
        reference: Reference,
        namespace: tuple[str, ...],
        found: list[Bound],
        tables: list[Reference],
    ) -> None:
        if reference.query is not None:
            query = replace(reference.query, sql=inlined(reference.query, self._values, literal))
            sql, inner = nested(query, reference.placeholder, ())
            for each in inner:
                self._sort(each, namespace, found, tables)
            found.append(Bound(reference, sql))
            return
        context = replace(self._context, namespace=namespace)
        name = context.full(reference.name)
        view = self._context.parts.views.find(name) if str(name) not in self._own else None
        if view is None:
            tables.append(replace(reference, name=name))
            return
        self._refuse_travel(reference, str(name))
        self._views += 1
        if self._views > _MOST_VIEWS:
            raise InvalidInput(
                f"view {name} leads through more than {_MOST_VIEWS} views",
                hint="a view must not read itself, directly or through others",
            )
        (select,) = parse_script(view.sql)
        assert isinstance(select, Select)
        sql, inner = nested(select, reference.placeholder, [c for c, _ in view.columns])
        for each in inner:
            self._sort(each, view.namespace, found, tables)
        found.append(Bound(replace(reference, name=name), sql))

    def _refuse_travel(self, reference: Reference, name: str) -> None:
        if (reference.version, reference.timestamp, reference.branch) != (None, None, None):
            raise SqlUnsupported(
                f"{name} is a view: it has no versions",
                hint="ask the tables it reads for a version",
            )
        if reference.metadata is not None:
            raise SqlUnsupported(f"{name} is a view", hint="only tables have metadata tables")

    def _refuse_version(self, reference: Reference) -> None:
        if (reference.version, reference.timestamp, reference.branch) != (None, None, None):
            raise SqlUnsupported(
                f"{reference.name}${reference.metadata} has no versions: it tells of all of them",
                hint="filter its rows by version or time instead",
            )

    def _heads(self, references: Sequence[Reference]) -> dict[str, TableHead]:
        """One look at all tables: no commit can come between."""
        transaction = self._context.transaction
        names = {r.name for r in references}
        if transaction is not None:
            names = {r.name for r in references if _travels(r)}
        names -= {r.name for r in references if str(r.name) in self._own and not _travels(r)}
        listed = sorted(names)
        heads = self._context.parts.catalog.find_many(listed)
        return {str(name): head for name, head in zip(listed, heads, strict=True)}

    def _table(self, reference: Reference, head: TableHead | None) -> Bound:
        name = str(reference.name)
        if reference.metadata is not None:
            self._refuse_version(reference)
            table = self._context.lake.table(name)
            kind, arguments = reference.metadata, self._arguments(reference)
            rows = metadata_rows(self._context.parts, table, kind, arguments)
            return Bound(reference, rows)
        if head is None:
            staged = self._staged(reference.name)
            where = where_of(reference.where, staged.schema, self._values)
            seen = _narrowed(staged.seen(where), reference)
            return Bound(reference, seen, doubts=self._doubts(reference, seen))
        line, version = self._at(reference, head)
        plan = self._plan(reference, line, version)
        return Bound(reference, plan, head.id, self._doubts(reference, plan))

    def _doubts(self, reference: Reference, plan: Plan) -> tuple[Doubt, ...]:
        conjuncts = (*reference.where, *reference.compared)
        return doubts_of(conjuncts, plan.schema, self._values)

    def _staged(self, name: TableName) -> TransactionTable:
        own = self._own.get(str(name))
        if own is not None:
            return own
        assert self._context.transaction is not None
        return self._context.transaction.table(str(name))

    def _plan(self, reference: Reference, head: TableHead, version: Version) -> Plan:
        planner = self._context.parts.planner

        def where(schema: Schema) -> Predicate:
            return where_of(reference.where, schema, self._values)

        state, live, visible, specs = planner.select(head, version, where)
        plan = pruned_plan(
            head,
            version,
            state.schema,
            live=live,
            visible=visible,
            specs=specs,
            where=where(state.schema),
            positions=planner.positions,
        )
        return _narrowed(plan, reference)

    def _at(self, reference: Reference, head: TableHead) -> tuple[TableHead, Version]:
        """The line and version that a reference names; the newest of main when it names none."""
        parts = self._context.parts
        if reference.branch is not None:
            return parts.refs.at(head, reference.branch)
        if reference.timestamp is not None:
            time_ms = to_time_ms(self._moment(reference.timestamp))
            return head, parts.catalog.resolve(head, version=None, time_ms=time_ms).version
        if reference.version is None:
            return head, head.version
        wanted = self._value(reference.version)
        if isinstance(wanted, str) and not wanted.isdigit():
            return parts.refs.at(head, wanted)
        if isinstance(wanted, bool) or not isinstance(wanted, int | str):
            raise InvalidInput(f"{wanted!r} is no version", hint="give a number or a ref's name")
        number = int(wanted)
        if not 0 <= number < _FAR:
            raise VersionNotFound(
                f"table {head.name} has no version {number}",
                hint=f"its versions are 0 to {head.version}",
                version=number,
            )
        try:
            return head, parts.catalog.resolve(head, version=number, time_ms=None).version
        except VersionNotFound:
            found = parts.refs.at_snapshot(head, number)
            if found is None:
                raise
            return found

    def _moment(self, expression: Expression) -> str:
        """A constant, worked out by the engine; without a zone it is UTC."""
        from_values = {name: self._values[name] for name in expression.parameters}
        wording, parts = self._context.wording, self._context.parts
        with wording.of_statement(expression.span), open_engine(parts) as engine:
            sql = f"SELECT CAST(({expression.sql}) AS TIMESTAMPTZ) AS moment"
            row = engine.batches(sql, from_values).read_all().to_pylist()[0]
        if row["moment"] is None:
            raise InvalidInput("the moment to travel to is NULL", hint="give a timestamp")
        return str(row["moment"].isoformat())

    def _value(self, value: int | str | Parameter | None) -> object:
        return self._values[value.name] if isinstance(value, Parameter) else value

    def _arguments(self, reference: Reference) -> list[object]:
        return [self._value(argument) for argument in reference.arguments]


def _travels(reference: Reference) -> bool:
    """Does it name a version, or something about the table that only commits have?"""
    given = (reference.version, reference.timestamp, reference.branch, reference.metadata)
    return any(each is not None for each in given)


def _narrowed(plan: Plan, reference: Reference) -> Plan:
    """Of a wide table, the columns that may be needed: telling the engine of all takes longer."""
    if reference.columns is None or len(plan.columns) <= _WIDE:
        return plan
    kept = tuple(c for c in plan.columns if c.casefold() in reference.columns)
    return replace(plan, columns=kept)


def bind(engine: "Session", relations: Iterable[Bound]) -> None:
    """Make the relations; queries come last, because they are over the others."""
    for relation in sorted(relations, key=lambda r: isinstance(r.rows, str)):
        placeholder = relation.reference.placeholder
        match relation.rows:
            case Plan() as plan:
                engine.bind_plan(placeholder, plan)
            case str() as sql:
                _bind_view(engine, relation, sql)
            case rows:
                engine.bind_rows(placeholder, rows)


def refuse_doubts(engine: "Session", relations: Iterable[Bound]) -> None:
    """Texts that the engine cannot read as values of their columns, whether rows come or not."""
    for relation in relations:
        for doubt in relation.doubts:
            column = ".".join(map(quoted, doubt.column))
            none = f"SELECT {column} FROM {quoted(relation.reference.placeholder)} LIMIT 0"
            text = text_literal(doubt.text)
            engine.batches(f"SELECT CASE WHEN FALSE THEN ({none}) ELSE {text} END").read_all()


def _bind_view(engine: "Session", view: Bound, sql: str) -> None:
    try:
        engine.run(f'CREATE OR REPLACE TEMP VIEW "{view.reference.placeholder}" AS\n{sql}')
    except SqlError as error:
        if view.reference.query is not None:
            raise
        raise InvalidInput(
            f"view {view.name} cannot be read any more: {unplaced(error.message)}",
            hint="what it reads has changed: CREATE OR REPLACE VIEW makes it anew",
            view=view.name,
        ) from error
