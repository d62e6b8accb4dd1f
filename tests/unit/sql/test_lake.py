"""Views, namespaces, comments, procedures, transactions and SHOW."""

from decimal import Decimal

import pytest

from lakebed.model.names import TableName
from lakebed.sql.parse import parse_script
from lakebed.sql.query import Parameter, Select, Span
from lakebed.sql.statements import (
    Begin,
    Call,
    CommentOn,
    Commit,
    CreateNamespace,
    CreateView,
    Describe,
    DescribeNamespace,
    DropNamespace,
    DropTable,
    DropView,
    Rollback,
    Show,
    ShowCreate,
    ShowProperties,
    Truncate,
    Use,
)
from tests.unit.sql.examples import T, read


def test_views_keep_the_text_of_their_query() -> None:
    view = read("CREATE OR REPLACE VIEW s.v (a COMMENT 'x', b) COMMENT 'c' AS\nSELECT 1, /* 2 */ 2")

    assert isinstance(view, CreateView)
    assert view.select.text == "SELECT 1, /* 2 */ 2"
    assert view.columns == (("a", "x"), ("b", None))
    assert (view.or_replace, view.comment) == (True, "c")
    assert read("DROP VIEW IF EXISTS s.v") == DropView(
        TableName(("s",), "v"), Span(0, 23, 1, 1), if_exists=True
    )


def test_namespaces_and_tables_are_created_and_dropped() -> None:
    created = read("CREATE NAMESPACE IF NOT EXISTS a.b COMMENT 'x' WITH DBPROPERTIES ('k' = 'v')")
    dropped = read("DROP DATABASE IF EXISTS a.b CASCADE")
    table = read("DROP TABLE IF EXISTS s.t PURGE")
    emptied = read("TRUNCATE TABLE s.t")

    assert isinstance(created, CreateNamespace)
    assert (created.namespace, created.if_not_exists) == (("a", "b"), True)
    assert created.properties == (("comment", "x"), ("k", "v"))
    assert isinstance(dropped, DropNamespace)
    assert (dropped.namespace, dropped.if_exists, dropped.cascade) == (("a", "b"), True, True)
    assert isinstance(table, DropTable)
    assert (table.name, table.if_exists, table.purge) == (T, True, True)
    assert isinstance(emptied, Truncate)
    assert emptied.target.name == T


def test_comments_are_set_and_removed() -> None:
    column, schema = parse_script(
        "COMMENT ON COLUMN s.t.a IS NULL; COMMENT ON SCHEMA a.b IS 'it''s'"
    )

    assert isinstance(column, CommentOn)
    assert (column.kind, column.name, column.path, column.comment) == (
        "column",
        ("s", "t"),
        ("a",),
        None,
    )
    assert isinstance(schema, CommentOn)
    assert (schema.kind, schema.name, schema.comment) == ("namespace", ("a", "b"), "it's")


def test_call_has_values() -> None:
    called = read(
        "CALL system.compact('s.t', -1.5, NULL, size => 5, tags => ['a', 'b'], ok := true, p => $p)"
    )
    restored = read("RESTORE TABLE s.t TO TIMESTAMP AS OF '2024-01-01'")

    assert isinstance(called, Call)
    assert called.procedure == ("system", "compact")
    assert called.positional == ("s.t", Decimal("-1.5"), None)
    assert called.named == (
        ("size", 5),
        ("tags", ("a", "b")),
        ("ok", True),
        ("p", Parameter("p")),
    )
    assert isinstance(restored, Call)
    assert restored.named == (("table", "s.t"), ("timestamp", "2024-01-01"))
    assert isinstance(read("CALL p()"), Call)


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("BEGIN", Begin),
        ("START TRANSACTION", Begin),
        ("COMMIT WORK", Commit),
        ("END", Commit),
        ("ROLLBACK TRANSACTION", Rollback),
        ("ABORT", Rollback),
    ],
)
def test_transactions_begin_and_end(sql: str, kind: type) -> None:
    assert isinstance(read(sql), kind)


def test_show_and_describe_name_what_they_show() -> None:
    def shown(sql: str) -> tuple[object, ...]:
        statement = read(sql)
        assert isinstance(statement, Show)
        return statement.what, statement.namespace, statement.pattern

    assert shown("SHOW TABLES") == ("tables", None, None)
    assert shown("SHOW VIEWS IN a.b 'x*'") == ("views", ("a", "b"), "x*")
    assert shown("SHOW SCHEMAS LIKE 'x%'") == ("namespaces", None, "x%")
    created, properties, described, column, space, used = parse_script(
        "SHOW CREATE TABLE s.t; SHOW TBLPROPERTIES s.t ('k'); DESC FORMATTED s.t;"
        " DESCRIBE s.t a.b; DESCRIBE SCHEMA a.b; USE SCHEMA a.b"
    )
    assert isinstance(created, ShowCreate)
    assert isinstance(properties, ShowProperties)
    assert (properties.name, properties.property) == (T, "k")
    assert isinstance(described, Describe)
    assert described.extended
    assert isinstance(column, Describe)
    assert (column.name, column.path) == (T, ("a", "b"))
    assert isinstance(space, DescribeNamespace)
    assert isinstance(used, Use)
    assert used.namespace == ("a", "b")


def test_history_is_a_query_of_the_metadata_table() -> None:
    select = read("DESCRIBE HISTORY s.t LIMIT 3")

    assert isinstance(select, Select)
    assert select.sql == 'SELECT * FROM "__lakebed_1" LIMIT 3'
    assert (select.tables[0].name, select.tables[0].metadata) == (T, "history")
