"""Statements about the lake as a whole: namespaces, views, comments, procedures, SHOW, USE."""

from lakebed.model.quoting import quoted
from lakebed.sql.alterations import Path
from lakebed.sql.fragments import Fragments, rows_of
from lakebed.sql.query import Reference, Select
from lakebed.sql.reader import Reader
from lakebed.sql.refs import read_as_of
from lakebed.sql.statements import (
    Call,
    CommentOn,
    CreateNamespace,
    CreateView,
    Describe,
    DescribeNamespace,
    DropNamespace,
    DropView,
    Explain,
    Properties,
    Show,
    ShowCreate,
    ShowProperties,
    Use,
    Value,
)
from lakebed.sql.values import read_properties, read_value

NAMESPACES = ("NAMESPACE", "SCHEMA", "DATABASE")
_QUERIES = ("SELECT", "WITH", "FROM", "VALUES", "(", "PIVOT", "UNPIVOT", "TABLE", "SUMMARIZE")


def read_create_namespace(reader: Reader) -> CreateNamespace:
    if_not_exists = reader.take("IF", "NOT", "EXISTS")
    namespace = reader.path("the name of a namespace")
    properties: Properties = ()
    while not reader.at_end:
        if reader.take("COMMENT"):
            properties += (("comment", reader.text()),)
        elif reader.take("WITH"):
            reader.take_any("DBPROPERTIES", "PROPERTIES")
            properties += read_properties(reader)
        else:
            break
    reader.expect_end()
    return CreateNamespace(namespace, reader.span, if_not_exists, properties)


def read_drop_namespace(reader: Reader) -> DropNamespace:
    if_exists = reader.take("IF", "EXISTS")
    namespace = reader.path("the name of a namespace")
    cascade = reader.take_any("CASCADE", "RESTRICT") == "CASCADE"
    reader.expect_end()
    return DropNamespace(namespace, reader.span, if_exists, cascade)


def read_create_view(reader: Reader, *, or_replace: bool) -> CreateView:
    if_not_exists = reader.take("IF", "NOT", "EXISTS")
    name = reader.table()
    columns: list[tuple[str, str | None]] = []
    if reader.sees("("):
        columns = reader.listed(
            lambda: (
                reader.name("the name of a column"),
                reader.text() if reader.take("COMMENT") else None,
            )
        )
    comment, properties = None, list[tuple[str, str]]()
    while not reader.sees("AS"):
        if reader.take("COMMENT"):
            comment = reader.text()
        elif reader.take("TBLPROPERTIES"):
            properties += read_properties(reader)
        else:
            raise reader.error("expected AS and a query")
    reader.expect("AS")
    if reader.at_end:
        raise reader.error("expected a query")
    select = Fragments(reader).select(reader.start, reader.end)
    if any(token.kind == "parameter" for token in reader.tokens) or select.parameters:
        raise reader.unsupported("a view has no parameters", hint="write the value into the query")
    return CreateView(
        name,
        reader.span,
        select,
        tuple(columns),
        if_not_exists,
        or_replace,
        comment,
        tuple(properties),
    )


def read_drop_view(reader: Reader) -> DropView:
    if_exists = reader.take("IF", "EXISTS")
    name = reader.table()
    reader.take_any("CASCADE", "RESTRICT")
    reader.expect_end()
    return DropView(name, reader.span, if_exists)


def read_comment(reader: Reader) -> CommentOn:
    reader.expect("COMMENT", "ON")
    what = reader.take_any("TABLE", "VIEW", "COLUMN", *NAMESPACES)
    if what is None:
        raise reader.error("expected TABLE, VIEW, COLUMN or SCHEMA")
    parts, path = reader.path(), Path()
    if what == "COLUMN":
        if len(parts) < 2:
            raise reader.error("expected TABLE.COLUMN")
        parts, path = parts[:-1], parts[-1:]
    reader.expect("IS")
    comment = None if reader.take("NULL") else reader.text("a comment in single quotes, or NULL")
    reader.expect_end()
    if what == "COLUMN":
        return CommentOn("column", parts, reader.span, comment, path)
    if what in NAMESPACES:
        return CommentOn("namespace", parts, reader.span, comment)
    return CommentOn("table" if what == "TABLE" else "view", parts, reader.span, comment)


def read_call(reader: Reader) -> Call:
    reader.expect("CALL")
    procedure = reader.path("the name of a procedure")
    positional: list[Value] = []
    named: list[tuple[str, Value]] = []

    def argument() -> None:
        if reader.peek().kind in ("word", "quoted") and reader.peek(1).text in ("=>", ":="):
            name = reader.name().lower()
            reader.next()
            named.append((name, read_value(reader)))
        elif named:
            raise reader.error("expected name => value: earlier arguments are named")
        else:
            positional.append(read_value(reader))

    if reader.peek(1).text == ")":
        reader.expect("(", ")")
    else:
        reader.listed(argument)
    reader.expect_end()
    return Call(procedure, reader.span, tuple(positional), tuple(named))


def read_restore(reader: Reader) -> Call:
    """Delta's RESTORE TABLE t TO VERSION AS OF 3, as the procedure `restore`."""
    reader.expect("RESTORE")
    reader.take("TABLE")
    named: list[tuple[str, Value]] = [("table", str(reader.table()))]
    reader.expect("TO")
    if reader.take("TIMESTAMP", "AS", "OF"):
        named.append(("timestamp", reader.parameter() or reader.text()))
    else:
        version, _ = read_as_of(reader, Fragments(reader))
        if version is None:
            raise reader.error("expected VERSION AS OF or TIMESTAMP AS OF")
        named.append(("version", version))
    reader.expect_end()
    return Call(("restore",), reader.span, (), tuple(named))


def read_show(reader: Reader) -> Show | ShowCreate | ShowProperties | Describe:
    reader.expect("SHOW")
    if reader.take("CREATE"):
        reader.take_any("TABLE", "VIEW")
        name = reader.table()
        reader.expect_end()
        return ShowCreate(name, reader.span)
    if reader.take("TBLPROPERTIES"):
        name = reader.table()
        wanted = reader.listed(reader.text)[0] if reader.sees("(") else None
        reader.expect_end()
        return ShowProperties(name, reader.span, wanted)
    if reader.take("COLUMNS"):
        if not reader.take("IN"):
            reader.expect("FROM")
        name = reader.table()
        reader.expect_end()
        return Describe(name, reader.span)
    what = reader.take_any("TABLES", "VIEWS", "NAMESPACES", "SCHEMAS", "DATABASES")
    if what is None:
        raise reader.error("expected TABLES, VIEWS, SCHEMAS, COLUMNS or CREATE TABLE")
    namespace = None
    if reader.take_any("IN", "FROM"):
        namespace = reader.path("the name of a namespace")
    reader.take("LIKE")
    pattern = reader.text() if reader.peek().kind == "string" else None
    reader.expect_end()
    if what in ("TABLES", "VIEWS"):
        return Show("tables" if what == "TABLES" else "views", reader.span, namespace, pattern)
    return Show("namespaces", reader.span, namespace, pattern)


def read_describe(reader: Reader) -> Describe | DescribeNamespace | Select:
    first = reader.start
    reader.next()  # DESCRIBE or DESC
    if reader.take("HISTORY"):
        return _history(reader)
    if reader.peek().upper in _QUERIES and not reader.sees("TABLE"):
        return Fragments(reader).select(first, reader.end)
    if reader.peek().upper in NAMESPACES and reader.peek(1).kind in ("word", "quoted"):
        reader.next()
        namespace = reader.path("the name of a namespace")
        reader.expect_end()
        return DescribeNamespace(namespace, reader.span)
    reader.take_any("TABLE", "VIEW")
    extended = reader.take_any("EXTENDED", "FORMATTED", "DETAIL") is not None
    name = reader.table()
    path = Path() if reader.at_end else reader.path("a column")
    reader.expect_end()
    return Describe(name, reader.span, extended, path)


def _history(reader: Reader) -> Select:
    """Delta's DESCRIBE HISTORY t is a query of `t$history`."""
    start = reader.start
    reader.take("TABLE")
    name = reader.table()
    span = reader.span_from(start)
    limit = ("LIMIT", str(reader.integer())) if reader.take("LIMIT") else ()
    reader.expect_end()
    placeholder = Fragments(reader).placeholder()
    reference = Reference(placeholder, name, span, f"{name.name}$history", metadata="history")
    sql = " ".join((rows_of(quoted(placeholder)), *limit))
    return Select(sql, reader.span, (reference,), (), reader.source.text[start : reader.end])


def read_use(reader: Reader) -> Use:
    reader.expect("USE")
    if reader.peek().upper in NAMESPACES and reader.peek(1).kind in ("word", "quoted"):
        reader.next()
    namespace = reader.path("the name of a namespace")
    reader.expect_end()
    return Use(namespace, reader.span)


def read_explain(reader: Reader) -> Explain:
    reader.expect("EXPLAIN")
    analyze = reader.take("ANALYZE")
    if reader.at_end or reader.peek().upper not in _QUERIES:
        raise reader.unsupported(
            "EXPLAIN takes a query", hint="EXPLAIN the SELECT with the same WHERE"
        )
    select = Fragments(reader).select(reader.start, reader.end)
    return Explain(select, reader.span, analyze)
