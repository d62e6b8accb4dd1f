"""SQL text in, statements out: `parse_script` cuts a script and reads each statement.

It runs nothing and looks nothing up. Whatever the text is, it gives statements or a LakebedError.
"""

from collections.abc import Callable
from dataclasses import replace

from lakebed.model.errors import SqlError, SqlUnsupported
from lakebed.model.quoting import quoted
from lakebed.sql.alter import read_alter_table
from lakebed.sql.copying import read_copy
from lakebed.sql.dml import read_delete, read_insert, read_truncate, read_update
from lakebed.sql.fragments import Fragments, rows_of
from lakebed.sql.lake import (
    NAMESPACES,
    read_call,
    read_comment,
    read_create_namespace,
    read_create_view,
    read_describe,
    read_drop_namespace,
    read_drop_view,
    read_explain,
    read_restore,
    read_show,
    read_use,
)
from lakebed.sql.merge import read_merge
from lakebed.sql.query import Select
from lakebed.sql.reader import Reader
from lakebed.sql.source import Source, Token
from lakebed.sql.statements import (
    Begin,
    Commit,
    CreateNamespace,
    CreateTable,
    CreateView,
    DropNamespace,
    DropTable,
    DropView,
    Rollback,
    Statement,
)
from lakebed.sql.tables import read_create_table, read_drop_table

_HOST = "a query sees the tables of the lake and nothing of the host"
_REFUSED = {
    **dict.fromkeys(("ATTACH", "DETACH", "INSTALL", "LOAD", "EXPORT", "IMPORT", "FORCE"), _HOST),
    **dict.fromkeys(("SET", "RESET", "PRAGMA"), "settings are given when the lake is opened"),
    **dict.fromkeys(("CHECKPOINT", "ANALYZE", "REFRESH", "CACHE", "MSCK"), "leave it out"),
    **dict.fromkeys(("OPTIMIZE", "VACUUM"), "maintenance is started with CALL"),
    **dict.fromkeys(("GRANT", "REVOKE"), "grants are made outside of SQL"),
    **dict.fromkeys(("PREPARE", "EXECUTE", "DEALLOCATE", "DECLARE"), "give parameters instead"),
    **dict.fromkeys(("SAVEPOINT", "RELEASE"), "a transaction commits or rolls back as a whole"),
    "REPLACE": "write CREATE OR REPLACE TABLE, or MERGE",
    "UPSERT": "use MERGE",
    "CONNECT": _HOST,
    "DISCONNECT": _HOST,
}


def parse_script(text: str) -> tuple[Statement, ...]:
    """The statements of a script, separated by `;`.

    Every refusal is a SqlError that shows line, column and, in a script, the statement's number.
    """
    if not isinstance(text, str):
        raise SqlError(f"SQL must be text, not {type(text).__name__}", hint="pass a str")
    source = Source(text)
    pieces = _pieces(source.tokens)
    statements = []
    for number, tokens in enumerate(pieces, 1):
        source.statement = number if len(pieces) > 1 else 0
        reader = Reader(source, tokens)
        _check_parameters(reader)
        statements.append(_statement(reader))
    return tuple(statements)


def _pieces(tokens: list[Token]) -> list[list[Token]]:
    pieces: list[list[Token]] = [[]]
    for token in tokens:
        if token.text == ";":
            pieces.append([])
        else:
            pieces[-1].append(token)
    return [piece for piece in pieces if piece]


def _statement(reader: Reader) -> Statement:
    word = reader.peek().upper
    if word in _READERS:
        try:
            return _READERS[word](reader)
        except RecursionError:
            raise reader.source.error(
                reader.span.start, "this is nested too deeply", hint="split the statement"
            ) from None
    if word in _REFUSED:
        raise reader.unsupported(f"{word} is not supported", hint=_REFUSED[word])
    raise reader.error("expected a statement", hint="such as SELECT, INSERT, MERGE, CREATE TABLE")


def _check_parameters(reader: Reader) -> None:
    marks = [t for t in reader.tokens if t.kind == "parameter"]
    numbered = [t for t in marks if t.text == "?" or t.text[1:].isdecimal()]
    styles = {t.text == "?" for t in numbered} | ({None} if len(numbered) < len(marks) else set())
    if len(styles) > 1:
        raise reader.error(
            "?, $1 and $name cannot be mixed", hint="use one of them", offset=marks[-1].start
        )


def _query(reader: Reader) -> Select:
    return Fragments(reader).select(reader.start, reader.end)


def _with(reader: Reader) -> Statement:
    """WITH in front of a query, or of a statement that changes rows and uses it."""
    start = reader.start
    reader.next()
    while not reader.at_end:  # a verb stands behind the last CTE; before AS it is a name
        reader.skip_until("INSERT", "UPDATE", "DELETE", "MERGE")
        if reader.tokens[reader.at - 1].text == ")":
            break
        reader.next()
    if reader.sees("INSERT"):
        return read_insert(reader, with_start=start)
    if not reader.at_end:
        return _changing(reader)
    return Fragments(reader).select(start, reader.end)


def _changing(reader: Reader) -> Statement:
    """WITH a AS (…), b AS (…) and then UPDATE, DELETE or MERGE."""
    reader.at = 0
    reader.expect("WITH")
    recursive = reader.take("RECURSIVE")
    fragments = Fragments(reader)
    reader.separated(lambda: _read_common(reader, fragments, recursive=recursive))
    return _CHANGING[reader.peek().upper](reader, fragments)


def _read_common(reader: Reader, fragments: Fragments, *, recursive: bool) -> None:
    """What follows may use it."""
    start, name = reader.start, reader.name("a name")
    if name.casefold() in fragments.common:
        raise reader.error(f"WITH has {name} twice", offset=start)
    columns = reader.listed(lambda: reader.name("a column")) if reader.sees("(") else []
    reader.expect("AS")
    reader.take("NOT")
    reader.take("MATERIALIZED")
    reader.expect("(")
    body = reader.skip_until()
    reader.expect(")")
    if recursive:
        fragments.common[name.casefold()] = fragments.recursive(start, reader.previous_end, name)
        return
    select = fragments.select(*body)
    if columns:
        listed = ", ".join(map(quoted, columns))
        select = replace(select, sql=f"{rows_of(f'({select.sql})')} AS renamed ({listed})")
    fragments.common[name.casefold()] = select


def _create(reader: Reader) -> CreateTable | CreateView | CreateNamespace:
    reader.expect("CREATE")
    or_replace = reader.take("OR", "REPLACE")
    for word in ("TEMP", "TEMPORARY", "EXTERNAL", "GLOBAL", "LOCAL", "MATERIALIZED"):
        if reader.sees(word):
            raise reader.unsupported(f"CREATE {word} is not supported", hint=f"leave {word} out")
    if reader.take("TABLE"):
        return read_create_table(reader, or_replace=or_replace)
    if reader.take("VIEW"):
        return read_create_view(reader, or_replace=or_replace)
    if not or_replace and reader.take_any(*NAMESPACES):
        return read_create_namespace(reader)
    raise _unsupported_kind(reader, "CREATE")


def _drop(reader: Reader) -> DropTable | DropView | DropNamespace:
    reader.expect("DROP")
    if reader.take("TABLE"):
        return read_drop_table(reader)
    if reader.take("VIEW"):
        return read_drop_view(reader)
    if reader.take_any(*NAMESPACES):
        return read_drop_namespace(reader)
    raise _unsupported_kind(reader, "DROP")


def _alter(reader: Reader) -> Statement:
    reader.expect("ALTER")
    if reader.take("TABLE"):
        return read_alter_table(reader)
    raise _unsupported_kind(reader, "ALTER")


def _unsupported_kind(reader: Reader, verb: str) -> SqlError:
    if reader.at_end or reader.peek().kind != "word":
        return reader.error("expected TABLE, VIEW or SCHEMA")
    word = reader.peek().upper
    return reader.source.error(
        reader.start,
        f"{verb} {word[:40]} is not supported",
        hint="tables, views and schemas are",
        kind=SqlUnsupported,
    )


def _begin(reader: Reader) -> Begin:
    if reader.next().upper == "START":
        reader.expect("TRANSACTION")
    else:
        reader.take_any("TRANSACTION", "WORK")
    reader.expect_end()
    return Begin(reader.span)


def _commit(reader: Reader) -> Commit:
    reader.next()
    reader.take_any("TRANSACTION", "WORK")
    reader.expect_end()
    return Commit(reader.span)


def _rollback(reader: Reader) -> Rollback:
    reader.next()
    reader.take_any("TRANSACTION", "WORK")
    reader.expect_end()
    return Rollback(reader.span)


_CHANGING: dict[str, Callable[[Reader, Fragments], Statement]] = {
    "UPDATE": read_update,
    "DELETE": read_delete,
    "MERGE": read_merge,
}
_READERS: dict[str, Callable[[Reader], Statement]] = {
    **dict.fromkeys(("SELECT", "FROM", "VALUES", "TABLE", "(", "SUMMARIZE"), _query),
    **dict.fromkeys(("PIVOT", "UNPIVOT", "PIVOT_WIDER", "PIVOT_LONGER"), _query),
    **dict.fromkeys(("DESCRIBE", "DESC"), read_describe),
    **dict.fromkeys(("BEGIN", "START"), _begin),
    **dict.fromkeys(("COMMIT", "END"), _commit),
    **dict.fromkeys(("ROLLBACK", "ABORT"), _rollback),
    "WITH": _with,
    "EXPLAIN": read_explain,
    "INSERT": read_insert,
    "UPDATE": read_update,
    "DELETE": read_delete,
    "MERGE": read_merge,
    "TRUNCATE": read_truncate,
    "COPY": read_copy,
    "CREATE": _create,
    "DROP": _drop,
    "ALTER": _alter,
    "COMMENT": read_comment,
    "CALL": read_call,
    "RESTORE": read_restore,
    "SHOW": read_show,
    "USE": read_use,
}
