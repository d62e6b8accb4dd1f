"""Pieces of a statement as SQL for the engine: lake tables and parameters replaced, text kept."""

from dataclasses import dataclass, replace

from sqlglot import exp

from lakebed.model.errors import SqlError
from lakebed.model.names import TableName
from lakebed.model.quoting import quoted
from lakebed.sql.columns import needed_columns
from lakebed.sql.dialect import SPAN, TIME_TRAVEL
from lakebed.sql.literals import NotLiteral, read_literal
from lakebed.sql.pruning import Seen, conjuncts_of, conjuncts_of_tables
from lakebed.sql.query import Conjunct, Expression, MetadataTable, Parameter, Reference, Select
from lakebed.sql.reader import Reader
from lakebed.sql.references import Found, find_tables
from lakebed.sql.rows import are_literals
from lakebed.sql.sandbox import check_calls, check_tree
from lakebed.sql.source import Token
from lakebed.sql.syntax import Syntax, read_syntax

PLACEHOLDER = "__lakebed_"
_METADATA: tuple[MetadataTable, ...] = (
    "history",
    "files",
    "snapshots",
    "schemas",
    "partitions",
    "refs",
    "changes",
    "publications",
)
_QUERIES = (exp.Query, exp.Values, exp.Pivot, exp.Summarize, exp.Describe)
_IN_SUBQUERY = (exp.Pivot, exp.Summarize, exp.Describe)
_FROM_BODY = {"expressions", "from_", "joins", "laterals"}
_Edit = tuple[int, int, str]


@dataclass(frozen=True, slots=True)
class Relation:
    """A table that the expressions of a statement see, such as the target of an UPDATE."""

    name: TableName
    alias: str


class Fragments:
    """Makes queries and expressions of one statement; placeholders count through all of them."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._made = 0
        self.seen: list[Relation] = []
        self.common: dict[str, Select] = {}  # queries of WITH, by casefolded names
        for token in reader.tokens:
            if token.name.lower().startswith(PLACEHOLDER):
                raise reader.source.error(
                    token.start, f"names that begin with {PLACEHOLDER} are reserved"
                )

    def select(self, start: int, end: int, *, hole: tuple[int, int] = (0, 0)) -> Select:
        """A query; what stands in the hole does not belong to it."""
        tokens = [t for t in self._reader.tokens if start <= t.start < end]
        if are_literals(tokens):
            return self._literal_rows(tokens)
        syntax = self._read(start, end, hole=hole)
        if not isinstance(syntax.tree, _QUERIES):
            raise self._reader.source.error(start, "expected a query")
        sql, tables, parameters = self._translate(syntax)
        if isinstance(syntax.tree, _IN_SUBQUERY):
            sql = rows_of(f"({sql})")
        text = self._reader.source.text[start:end]
        return Select(sql, self._reader.source.span(start, end), tables, parameters, text)

    def recursive(self, start: int, end: int, name: str) -> Select:
        """The rows of one query of WITH RECURSIVE, which may name itself."""
        syntax = self._read(
            start, end, prefix="WITH RECURSIVE ", suffix=f" {rows_of(quoted(name))}"
        )
        sql, tables, parameters = self._translate(syntax)
        text = self._reader.source.text[start:end]
        return Select(sql, self._reader.source.span(start, end), tables, parameters, text)

    def _literal_rows(self, tokens: list[Token]) -> Select:
        start, end = tokens[0].start, tokens[-1].end
        given = [
            (t.start - start, t.end - start, self._reader.parameter_name(t))
            for t in tokens
            if t.kind == "parameter"
        ]
        plain, text = self._reader.source.plain[start:end], self._reader.source.text[start:end]
        sql = _edited(plain, [(a, b, f"${name}") for a, b, name in given])
        names = tuple(dict.fromkeys(name for _, _, name in given))
        return Select(sql, self._reader.source.span(start, end), (), names, text)

    def expression(self, start: int, end: int) -> Expression:
        """One expression and nothing behind it."""
        syntax = self._read(start, end, prefix="SELECT ")
        one_value(syntax)
        return self._expression(syntax, start, end, prefix="SELECT ")

    def row(self, start: int, end: int, size: int) -> tuple[Expression, ...]:
        """The columns of a subquery that gives one row, each as an expression."""
        syntax = self._read(start, end)
        tree = syntax.tree
        listed = tree.selects if isinstance(tree, exp.Query) else []
        if len(listed) != size or any(each.is_star for each in listed):
            raise self._reader.source.error(
                start, f"expected a query of {size} columns", hint="name each of its columns"
            )
        whole = self._expression(syntax, start, end, prefix="")
        names = [f"c{number}" for number in range(size)]
        inner = f"({whole.sql}\n) AS one_row({', '.join(names)})"
        return tuple(replace(whole, sql=f"(SELECT {name} FROM {inner})") for name in names)

    def relations(self, start: int, end: int) -> tuple[Expression, tuple[str, ...]]:
        """What may stand behind FROM, with its aliases; expressions read later see them."""
        syntax = self._read(start, end, prefix="SELECT * FROM ")
        tree = syntax.tree
        said = {key for key, value in tree.args.items() if value}
        if not isinstance(tree, exp.Select) or said - _FROM_BODY:
            raise self._reader.source.error(start, "expected tables or queries")
        body = self._expression(syntax, start, end, prefix="SELECT * FROM ")
        named = [tree.args["from_"].this, *(join.this for join in tree.args.get("joins") or ())]
        aliases = tuple(relation.alias_or_name for relation in named)
        full = {t.alias: t.name for t in body.tables if t.alias == t.name.name}
        for alias in aliases:
            self.seen.append(Relation(full.get(alias, TableName((), alias)), alias))
        return body, aliases

    def conjuncts(self, start: int, end: int, target: Relation) -> tuple[Conjunct, ...]:
        """What a condition asks of the rows of one relation alone."""
        syntax = self._read(start, end, prefix="SELECT ")
        others = {r.alias.casefold() for r in self.seen if r is not target}
        parts = (*target.name.namespace, target.name.name)
        names = {start: name for start, _, name in self._parameters(syntax)}
        return conjuncts_of([one_value(syntax)], Seen(target.alias, parts, others, names))

    def placeholder(self) -> str:
        self._made += 1
        return f"{PLACEHOLDER}{self._made}"

    def _read(
        self,
        start: int,
        end: int,
        *,
        prefix: str = "",
        hole: tuple[int, int] = (0, 0),
        suffix: str = "",
    ) -> Syntax:
        tokens = [t for t in self._reader.tokens if start <= t.start < end]
        if not tokens:
            raise self._reader.source.error(start, "something is missing here")
        source = self._reader.source
        syntax = read_syntax(source, tokens, prefix=prefix, hole=hole, suffix=suffix)
        check_calls(self._reader.source, syntax.tokens)
        check_tree(syntax)
        return syntax

    def _expression(self, syntax: Syntax, start: int, end: int, *, prefix: str) -> Expression:
        sql, tables, parameters = self._translate(syntax)
        span = self._reader.source.span(start, end)
        return Expression(sql.removeprefix(prefix), span, tables, parameters)

    def _translate(self, syntax: Syntax) -> tuple[str, tuple[Reference, ...], tuple[str, ...]]:
        found = find_tables(syntax)
        aliases = _written_aliases(found)
        needed = needed_columns(syntax, found)
        parameters = self._parameters(syntax)
        given = {start: name for start, _, name in parameters}
        where = conjuncts_of_tables(syntax, found, given)
        edits: list[_Edit] = []
        tables = []
        for table, alias, columns, conjuncts in zip(found, aliases, needed, where, strict=True):
            name = self.placeholder()
            shown = "" if table.aliased or table.names_itself else f" AS {quoted(alias)}"
            edits.append((table.start, table.end, f"{quoted(name)}{shown}"))
            if table.clause is not None:
                edits.append((*table.clause.meta[SPAN], ""))
            reference = self._reference(syntax, table, name, columns)
            if reference.metadata is None:
                kept, compared = conjuncts
                reference = replace(reference, where=kept, compared=compared)
            tables.append(reference)
        edits += self._qualifiers(syntax, found, aliases)
        cut = [edit[:2] for edit in edits]
        names = []
        for start, end, name in parameters:
            if not any(a <= start < b for a, b in cut):
                edits.append((start, end, f"${name}"))
                names.append(name)
        return _edited(syntax.text, edits), tuple(tables), tuple(dict.fromkeys(names))

    def _reference(
        self, syntax: Syntax, table: Found, placeholder: str, columns: frozenset[str] | None
    ) -> Reference:
        name, metadata = metadata_of(table.parts[-1])
        version, timestamp = self._time_travel(syntax, table.clause)
        end = table.end
        known = len(table.parts) == 1 and metadata is None and version is None and timestamp is None
        return Reference(
            placeholder,
            TableName(table.parts[:-1], name),
            self._reader.source.span(table.start + syntax.shift, end + syntax.shift),
            alias=table.alias,
            version=version,
            timestamp=timestamp,
            branch=table.branch,
            metadata=metadata,
            arguments=tuple(self._value(syntax, a) for a in table.arguments or ()),
            columns=columns,
            query=self.common.get(name.casefold()) if known and not table.branch else None,
        )

    def _time_travel(
        self, syntax: Syntax, clause: exp.Version | None
    ) -> tuple[int | str | Parameter | None, Expression | None]:
        if clause is None:
            return None, None
        if clause.meta[TIME_TRAVEL] == "VERSION":
            return self._value(syntax, clause.expression), None
        start, end = clause.meta["value"]
        if clause.find(exp.Query) is not None:
            raise syntax.error(start, "a time cannot come from a query", hint="use a parameter")
        given = [p for p in self._parameters(syntax) if start <= p[0] < end]
        sql = _edited(syntax.text[:end], [(a, b, f"${name}") for a, b, name in given])[start:]
        span = self._reader.source.span(start + syntax.shift, end + syntax.shift)
        names = tuple(dict.fromkeys(name for _, _, name in given))
        return None, Expression(sql, span, (), names)

    def _value(self, syntax: Syntax, node: exp.Expr) -> int | str | Parameter:
        """A version, or an argument of $changes: a number, a text or a parameter."""
        if SPAN in node.meta:
            for start, _, name in self._parameters(syntax):
                if start == node.meta[SPAN][0]:
                    return Parameter(name)
        try:
            value = read_literal(node)
        except NotLiteral:
            value = None
        if type(value) is int or type(value) is str:
            return value
        marks = [int(n.meta["start"]) for n in node.walk() if "start" in n.meta]
        raise syntax.error(
            min(marks, default=0),
            "a version is a number or the name of a ref in quotes",
            hint="VERSION AS OF 3, VERSION AS OF 'tag', TIMESTAMP AS OF '2024-01-31'",
            kind=SqlError,
        )

    def _parameters(self, syntax: Syntax) -> list[tuple[int, int, str]]:
        """Where parameters stand, with their names."""
        tokens = {t.start: t for t in syntax.tokens}
        found = []
        for node in syntax.find(exp.Placeholder):
            start, end = node.meta.get(SPAN, (-1, -1))
            token = tokens.get(start + syntax.shift)
            if token is None or token.text == "@":  # the engine's operator for abs()
                continue
            name = syntax.text[start + 1 : end]
            if token.kind == "parameter":
                name = self._reader.parameter_name(token)
            found.append((start, end, name))
        return sorted(found)

    def _qualifiers(self, syntax: Syntax, found: list[Found], aliases: list[str]) -> list[_Edit]:
        """`sales.orders.id`: the engine knows the table by its alias alone."""
        known = {_folded((*r.name.namespace, r.name.name)): r.alias for r in self.seen}
        for table, alias in zip(found, aliases, strict=True):
            if not table.aliased:
                known[_folded(table.parts)] = alias
        taken = [(t.start, t.end) for t in found]
        edits = []
        for chain in _chains(syntax.tokens):
            start = chain[0].start - syntax.shift
            names = _folded(tuple(token.name for token in chain))
            length = next((n for n in range(len(names), 1, -1) if names[:n] in known), 0)
            if length and not any(a <= start < b for a, b in taken):
                end = chain[length - 1].end - syntax.shift
                edits.append((start, end, quoted(known[names[:length]])))
        return edits


def one_value(syntax: Syntax) -> exp.Expr:
    """The one expression behind SELECT; anything more is refused."""
    tree = syntax.tree
    said = {key for key, value in tree.args.items() if value}
    if isinstance(tree, exp.Select) and said == {"expressions"} and len(tree.expressions) == 1:
        value = tree.expressions[0]
        if isinstance(value, exp.Expr) and not isinstance(value, exp.Alias | exp.Star):
            return value
    raise syntax.error(
        syntax.tokens[0].start - syntax.shift, "expected one expression", kind=SqlError
    )


def rows_of(relation: str) -> str:
    return f"SELECT * FROM {relation}"


def metadata_of(name: str) -> tuple[str, MetadataTable | None]:
    table, mark, suffix = name.rpartition("$")
    for kind in _METADATA:
        if mark and table and suffix.lower() == kind:
            return table, kind
    return name, None


def _written_aliases(found: list[Found]) -> list[str]:
    """What each table is called in the engine: `a.t` and `b.t` in one FROM need two names."""
    written = []
    for table in found:
        twins = {
            other.parts
            for other in found
            if other.select is table.select and other.alias.casefold() == table.alias.casefold()
        }
        distinct = len(twins) > 1 and not table.aliased
        written.append(".".join(table.parts) if distinct else table.alias)
    return written


def _chains(tokens: tuple[Token, ...]) -> list[list[Token]]:
    """Names joined by dots."""
    chains: list[list[Token]] = []
    joined = False  # by a dot to what came before
    for token in tokens:
        if token.kind in ("word", "quoted"):
            if joined:
                chains[-1].append(token)
            else:
                chains.append([token])
            joined = False
        elif token.text == "." and not joined:
            joined = bool(chains) and bool(chains[-1])
        else:
            chains.append([])
            joined = False
    return [chain for chain in chains if len(chain) > 1]


def _folded(parts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(part.casefold() for part in parts)


def _edited(text: str, edits: list[_Edit]) -> str:
    pieces, at = [], 0
    for start, end, new in sorted(edits):
        pieces += [text[at:start], new]
        at = end
    return "".join([*pieces, text[at:]])
