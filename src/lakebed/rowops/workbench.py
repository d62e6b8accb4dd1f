"""The SQL engine as operations use it: relations by name, expressions checked by its own parser."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import orjson
import pyarrow as pa

from lakebed.core.plan import Plan
from lakebed.model.errors import InvalidExpression, SqlUnsupported
from lakebed.model.functions import is_refused
from lakebed.model.names import is_text
from lakebed.model.quoting import quoted
from lakebed.model.schema import Schema

if TYPE_CHECKING:
    from lakebed.engines.duckdb.session import Session

Prepare = Callable[["Session"], None]
_LEAD = "SELECT\n"
_NOT_HERE = {
    "SUBQUERY": "a subquery",
    "PARAMETER": "a parameter",
    "WINDOW": "a window function",
    "STAR": "*",
    "DEFAULT": "DEFAULT",
}
_AROUND = ("where_clause", "group_expressions", "having", "sample", "qualify", "modifiers")


def unused(name: str, taken: Iterable[str]) -> str:
    """A name for a column of our own beside those of others, whose SQL may name any of theirs."""
    known = {other.casefold() for other in taken}
    while name in known:
        name += "_"
    return name


@dataclass(frozen=True, slots=True)
class Expression:
    """SQL text that is one expression and nothing else."""

    sql: str  # in brackets
    columns: tuple[tuple[str, ...], ...]  # the names it uses, with their qualifiers
    is_text_literal: bool = False
    is_null: bool = False
    equal: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = ()  # columns it demands equal


class Workbench:
    """One session for one call, opened when it is first needed."""

    def __init__(
        self,
        open_session: "Callable[[], Session]",
        prepare: "Prepare | None" = None,
    ) -> None:
        """`prepare` makes other relations that expressions may look at, by subqueries."""
        self._open = open_session
        self._prepare = prepare
        self._session: Session | None = None
        self._made = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._session is not None:
            self._session.__exit__(kind, error, traceback)

    @property
    def session(self) -> "Session":
        if self._session is None:
            self._session = self._open().__enter__()
            if self._prepare is not None:
                self._prepare(self._session)
        return self._session

    def see(self, prepare: Prepare) -> None:
        """Make other relations for expressions to look at, or make them anew."""
        self._prepare = prepare
        if self._session is not None:
            prepare(self._session)

    def name(self, what: str) -> str:
        """A new name for a relation, quoted."""
        self._made += 1
        return quoted(self._fresh(what))

    def bind(self, plan: Plan, metadata: tuple[str, ...]) -> str:
        """A relation with the plan's rows."""
        self._made += 1
        name = self._fresh("plan")
        self.session.bind_plan(name, plan, metadata=metadata)
        return quoted(name)

    def bind_rows(self, rows: pa.Table | pa.RecordBatchReader) -> str:
        self._made += 1
        name = self._fresh("rows")
        self.session.bind_rows(name, rows)
        return quoted(name)

    def bind_batch(self, name: str, batch: pa.RecordBatch, schema: Schema) -> str:
        """A relation with rows of a table; those of another batch may take their place."""
        self.session.bind_batch(name, batch, schema)
        return quoted(name)

    def _fresh(self, what: str) -> str:
        return f"_lakebed_{what}_{self._made}"

    def run(self, sql: str) -> None:
        self.session.run(sql)

    def batches(self, sql: str) -> Iterator[pa.RecordBatch]:
        for batch in self.session.batches(sql):
            if batch.num_rows:
                yield batch

    def answers(self, test: Expression, relation: str) -> pa.ChunkedArray:
        """TRUE, FALSE or NULL for every row, in their order."""
        found = self.session.batches(f"SELECT {test.sql} AS answer FROM {relation}")
        return found.read_all().column(0)

    def shape(self, sql: str) -> pa.Schema:
        """Of the rows that a query gives."""
        return self.session.batches(sql).schema

    def row(self, sql: str) -> dict[str, Any] | None:
        """The first row of an answer."""
        return next((row for batch in self.batches(sql) for row in batch.to_pylist()), None)

    def refuse_no_condition(self, tests: Sequence[Expression], relations: str) -> None:
        """A number is no condition, though the engine would take it for one; `relations` as FROM.

        Names and types are checked too, before any row is read.
        """
        if not tests:
            return
        listed = ", ".join(test.sql for test in tests)
        where = " AND ".join(f"{test.sql} IS NOT NULL" for test in tests)  # no aggregate, then
        found = self.shape(f"SELECT {listed} FROM {relations} WHERE {where} LIMIT 0")
        for test, kind in zip(tests, found.types, strict=True):
            if not pa.types.is_boolean(kind) and not test.is_null:
                raise InvalidExpression(
                    f"{test.sql.strip('()').strip()[:200]} is {kind}, not TRUE or FALSE",
                    hint="compare it with something, as in n <> 0",
                )

    def try_on_nulls(self, test: Expression, relation: str) -> None:
        """Literals that fit no column are refused where no row is met, too; `relation` as FROM."""
        none = "(VALUES (1)) AS _lakebed_none(one)"
        self.row(f"SELECT {test.sql} AS answer FROM {none} LEFT JOIN {relation} ON FALSE")

    def expression(self, text: object, what: str) -> Expression:
        """`text` if it is one expression; `what` names it in errors."""
        if not isinstance(text, str) or not is_text(text) or not text.strip():
            raise InvalidExpression(f"{what} is no SQL text: {text!r}", hint="write an expression")
        for sql in (f"{_LEAD}{text}\n", f"SELECT (\n{text}\n)"):  # alone, and as it is used
            tree = orjson.loads(self.session.parsed(sql))
            if tree["error"]:
                raise _unreadable(text, what, tree)
            node = _only(tree["statements"], text, what)
        self._refuse_parts(node, text, what)
        names = (part["column_names"] for part in _nodes(node) if part["class"] == "COLUMN_REF")
        kind = _kind(node) if node.get("class") == "CONSTANT" else ""
        found = tuple(tuple(n) for n in names)
        equal = tuple(_equalities(node))
        return Expression(f"(\n{text}\n)", found, kind == "STRING", kind == "NULL", equal)

    def _refuse_parts(self, node: Mapping[str, Any], text: str, what: str) -> None:
        for part in _nodes(node):
            _refuse_function(str(part.get("function_name") or ""), what)
        for part in _nodes(node, subqueries=False):
            refused = _NOT_HERE.get(str(part.get("class")))
            if refused and not (refused == "a subquery" and self._prepare):
                raise InvalidExpression(
                    f"{what} has {refused}, which cannot stand here: {text.strip()[:200]}",
                    hint="use the columns of the table, literals and functions of one row",
                )


def _refuse_function(name: str, what: str) -> None:
    if is_refused(name):
        raise SqlUnsupported(
            f"{what} calls {name[:60]}, which is not allowed in SQL",
            hint="expressions see the rows of the lake and nothing of the host",
        )


def _only(statements: Sequence[dict[str, Any]], text: str, what: str) -> dict[str, Any]:
    node = statements[0]["node"] if len(statements) == 1 else {}
    listed = node.get("select_list") or []
    if (
        len(listed) != 1
        or listed[0]["alias"]
        or node["from_table"]["type"] != "EMPTY"
        or any(node.get(name) for name in _AROUND)
    ):
        raise InvalidExpression(
            f"{what} is not one expression: {text.strip()[:200]}",
            hint="write an expression such as price * 2, without ';' or further clauses",
        )
    found: dict[str, Any] = listed[0]
    return found


def _nodes(value: object, *, subqueries: bool = True) -> Iterator[dict[str, Any]]:
    """Every part of an expression; those inside subqueries unless told otherwise."""
    if isinstance(value, dict):
        if "class" in value:
            yield value
        for key, below in value.items():
            if subqueries or key != "subquery":
                yield from _nodes(below, subqueries=subqueries)
    elif isinstance(value, list):
        for below in value:
            yield from _nodes(below, subqueries=subqueries)


def _equalities(node: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Of `a = b AND c = d AND …`, the parts that compare two columns."""
    if node.get("type") == "CONJUNCTION_AND":
        for part in node["children"]:
            yield from _equalities(part)
    elif node.get("type") == "COMPARE_EQUAL":
        sides = [node["left"], node["right"]]
        if all(side.get("class") == "COLUMN_REF" for side in sides):
            yield tuple(sides[0]["column_names"]), tuple(sides[1]["column_names"])


def _kind(node: Mapping[str, Any]) -> str:
    return str((node.get("literal") or {}).get("kind", ""))


def _unreadable(text: str, what: str, tree: Mapping[str, Any]) -> InvalidExpression:
    at = int(tree.get("position") or len(_LEAD)) - len(_LEAD)
    before = text.encode()[: max(0, at)].decode(errors="ignore")
    line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
    return InvalidExpression(
        f"{what} cannot be read at line {line}, column {column}: {tree.get('error_message')}",
        hint="write one expression in the SQL of DuckDB",
        line=line,
        character=column,
    )
