"""Queries: time travel, metadata tables, parameters, the columns and tables they need."""

import pytest

from lakebed.model.errors import SqlError, SqlParameters, SqlUnsupported
from lakebed.model.names import TableName
from lakebed.sql.parameters import bind_parameters, parameters_of
from lakebed.sql.parse import parse_script
from lakebed.sql.query import Parameter, Select
from lakebed.sql.statements import (
    Explain,
)
from tests.unit.sql.examples import T, read, texts


@pytest.mark.parametrize(
    ("clause", "version", "timestamp", "branch"),
    [
        ("VERSION AS OF 3", 3, None, None),
        ("FOR VERSION AS OF 'tag'", "tag", None, None),
        ("FOR SYSTEM_VERSION AS OF 123456789012345", 123456789012345, None, None),
        ("version as of $v", Parameter("v"), None, None),
        ("TIMESTAMP AS OF '2024-01-31'", None, "'2024-01-31'", None),
        ("FOR SYSTEM_TIME AS OF now() - INTERVAL 1 DAY", None, "now() - INTERVAL 1 DAY", None),
        ("FOR TIMESTAMP AS OF ?", None, "$1", None),
        ("AT (VERSION => 3)", 3, None, None),
        ("AT (TIMESTAMP => $t)", None, "$t", None),
        ("@dev", None, None, "dev"),
        ('@"dev-1"', None, None, "dev-1"),
    ],
)
def test_time_travel_is_taken_out_of_the_text(
    clause: str, version: object, timestamp: str | None, branch: str | None
) -> None:
    space = "" if clause.startswith("@") else " "
    select = read(f"SELECT x.a FROM s.t{space}{clause} AS x WHERE x.a = 1")

    assert isinstance(select, Select)
    (table,) = select.tables
    assert " ".join(select.sql.split()) == 'SELECT x.a FROM "__lakebed_1" AS x WHERE x.a = 1'
    assert (table.name, table.alias) == (T, "x")
    assert (table.version, table.branch) == (version, branch)
    assert texts(table.timestamp) == [timestamp]
    assert parameters_of(select) == tuple(
        name for name in ("v", "1", "t") if f"${name}" in clause or (name == "1" and "?" in clause)
    )


@pytest.mark.parametrize(
    "sql",
    [
        "FROM t VERSION AS OF 1.5",
        "FROM t VERSION AS OF a + 1",
        "FROM t VERSION AS OF",
        "FROM t@",
        "FROM t@dev VERSION AS OF 3",
        "FROM t TIMESTAMP AS OF (SELECT max(ts) FROM u)",
    ],
)
def test_odd_time_travel_is_refused(sql: str) -> None:
    with pytest.raises(SqlError):
        parse_script(sql)


@pytest.mark.parametrize(
    ("text", "name", "metadata", "arguments"),
    [
        ("s.t$history", T, "history", ()),
        ('s."t$files"', T, "files", ()),
        ("T$SNAPSHOTS", TableName((), "T"), "snapshots", ()),
        ("s.t$changes(2, 5)", T, "changes", (2, 5)),
        ("s.t$changes('2024-01-01', ?)", T, "changes", ("2024-01-01", Parameter("1"))),
        ("table_changes('s.t', 2)", T, "changes", (2,)),
        ("s.t$other", TableName(("s",), "t$other"), None, ()),
    ],
)
def test_metadata_tables_are_told_from_names(
    text: str, name: TableName, metadata: str | None, arguments: tuple[object, ...]
) -> None:
    select = read(f"SELECT * FROM {text} AS m")

    assert isinstance(select, Select)
    (table,) = select.tables
    assert (table.name, table.metadata, table.arguments) == (name, metadata, arguments)
    assert select.sql == 'SELECT * FROM "__lakebed_1" AS m'


def test_ctes_are_no_tables_of_the_lake() -> None:
    select = read(
        """WITH t AS (SELECT * FROM t), u AS (SELECT * FROM t)
        SELECT * FROM T, u, (WITH v AS (SELECT 1) SELECT * FROM v, u) x, v, s.t"""
    )

    assert isinstance(select, Select)
    assert [str(table.name) for table in select.tables] == ["t", "v", "s.t"]


def test_tables_of_one_name_are_told_apart() -> None:
    select = read("SELECT a.t.id, b.t.id FROM a.t, b.t WHERE a.t.id = b.t.id")

    assert isinstance(select, Select)
    assert select.sql == (
        'SELECT "a.t".id, "b.t".id FROM "__lakebed_1" AS "a.t", "__lakebed_2" AS "b.t"'
        ' WHERE "a.t".id = "b.t".id'
    )


def test_needed_columns_are_a_superset_by_name() -> None:
    select = read(
        "SELECT o.id, lower(note), c.* FROM orders o JOIN customers c ON o.customer = c.id"
        " JOIN prices p USING (symbol) WHERE p.price > 1"
    )

    assert isinstance(select, Select)
    orders, customers, prices = (table.columns for table in select.tables)
    assert orders is not None
    assert prices is not None
    assert {"id", "note", "customer", "symbol"} <= orders
    assert "price" not in orders
    assert {"price", "symbol", "note"} <= prices
    assert not prices & {"customer", "id"}
    assert customers is None


@pytest.mark.parametrize(
    ("sql", "expected", "names"),
    [
        ("SELECT ?, ?", "SELECT $1, $2", ("1", "2")),
        ("SELECT $2, $1, $2", "SELECT $2, $1, $2", ("2", "1")),
        ("SELECT :a, $b, a[1:2], {'x':c}", "SELECT $a, $b, a[1:2], {'x':c}", ("a", "b")),
        ("SELECT ?::INT, ?||?", "SELECT $1::INT, $2||$3", ("1", "2", "3")),
        ("SELECT a<$1,$2", "SELECT a<$1,$2", ("1", "2")),
        (
            "SELECT x$y WHERE a IN ($a,$b)",
            "SELECT x$y WHERE a IN ($a,$b)",
            ("a", "b"),
        ),
        ("SELECT $a||$$it's$$||$x$ $$ $x$||$a", "SELECT $a||$$it's$$||$x$ $$ $x$||$a", ("a",)),
        ("SELECT '?', \"$1\", @x -- ?", "SELECT '?', \"$1\", @x", ()),
    ],
)
def test_parameters_are_named(sql: str, expected: str, names: tuple[str, ...]) -> None:
    select = read(sql)

    assert isinstance(select, Select)
    assert (select.sql, select.parameters) == (expected, names)


def test_parameters_are_checked_before_anything_runs() -> None:
    statement = read("UPDATE t SET a = ?, b = (SELECT max(x) FROM u VERSION AS OF ?) WHERE c = ?")

    assert bind_parameters(statement, [1, 2, 3]) == {"1": 1, "2": 2, "3": 3}
    named = read("CALL p($table, size => :size)")
    assert bind_parameters(named, {"table": "t", "size": 5}) == {"table": "t", "size": 5}
    for given in ([1, 2], [1, 2, 3, 4], {"a": 1}, None, "abc", 5):
        with pytest.raises(SqlParameters):
            bind_parameters(statement, given)  # type: ignore[arg-type]
    with pytest.raises(SqlError, match="mixed"):
        parse_script("SELECT ?, $1")
    with pytest.raises(SqlError, match="mixed"):
        parse_script("SELECT $a, $1")


def test_explain_holds_a_query() -> None:
    explained = read("EXPLAIN ANALYZE FROM s.t")

    assert isinstance(explained, Explain)
    assert explained.analyze
    assert explained.select.tables[0].name == T
    with pytest.raises(SqlUnsupported):
        parse_script("EXPLAIN DELETE FROM t")
