"""Statements in Spark's SQL that change rows: cut into the user's own pieces of text."""

import pytest

from lakebed.model.errors import SqlError, SqlUnsupported
from lakebed.rowops.clause import Clause, When
from lakebed.sql.spark_statements import Delete, Insert, Merge, Update, parse_spark_statement


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 'it\\'s'",
        " -- x\n /* y */ with a as (select 1) select 1",
        "VALUES (1)",
        "(SELECT 1)",
    ],
)
def test_queries_are_left_to_spark(text: str) -> None:
    assert parse_spark_statement(text) is None


def test_insert_keeps_its_query_and_columns() -> None:
    found = parse_spark_statement('INSERT INTO a.t (id, `x y`) SELECT 1, "a, b" FROM b.u;')

    assert isinstance(found, Insert)
    assert (str(found.target.name), found.columns) == ("a.t", ("id", "x y"))
    assert found.source == 'SELECT 1, "a, b" FROM b.u'
    assert not found.overwrite
    assert not found.by_name


def test_insert_overwrite_by_name_from_brackets() -> None:
    found = parse_spark_statement("INSERT OVERWRITE TABLE a.t@dev BY NAME (SELECT 1 AS id)")

    assert isinstance(found, Insert)
    assert (found.target.branch, found.overwrite, found.by_name) == ("dev", True, True)
    assert found.columns is None
    assert found.source == "(SELECT 1 AS id)"


def test_update_takes_its_assignments_apart() -> None:
    found = parse_spark_statement(
        "UPDATE a.t AS z SET z.n = if(n > 1, 2, 3), s.m = CASE WHEN a THEN 1 ELSE 2 END"
        " WHERE z.id = 1"
    )

    assert isinstance(found, Update)
    assert found.target.alias == "z"
    assert found.values == {"n": "if(n > 1, 2, 3)", "s.m": "CASE WHEN a THEN 1 ELSE 2 END"}
    assert found.where == "z.id = 1"


def test_delete_without_a_condition_is_of_all_rows() -> None:
    found = parse_spark_statement("DELETE FROM a.t")

    assert isinstance(found, Delete)
    assert found.where is None


def test_merge_reads_every_clause() -> None:
    found = parse_spark_statement(
        """MERGE INTO a.t USING (SELECT * FROM b.u WHERE x) AS s ON t.id = s.id -- by id
        WHEN MATCHED AND s.x = 'WHEN' THEN DELETE
        WHEN MATCHED THEN UPDATE SET *
        WHEN NOT MATCHED BY TARGET THEN INSERT (id, n) VALUES (s.id, f(1, 2))
        WHEN NOT MATCHED THEN INSERT *
        WHEN NOT MATCHED BY SOURCE THEN UPDATE SET n = 0"""
    )

    assert isinstance(found, Merge)
    assert (found.target.alias, found.alias, found.on.strip()) == ("t", "s", "t.id = s.id")
    assert found.source == "SELECT * FROM b.u WHERE x"
    assert found.clauses == (
        Clause(When.MATCHED, "delete", "s.x = 'WHEN'"),
        Clause(When.MATCHED, "update"),
        Clause(When.NOT_MATCHED, "insert", None, {"id": "s.id", "n": "f(1, 2)"}),
        Clause(When.NOT_MATCHED, "insert"),
        Clause(When.BY_SOURCE, "update", None, {"n": "0"}),
    )


def test_merge_takes_a_table_or_view_as_its_source() -> None:
    found = parse_spark_statement(
        "MERGE INTO a.t USING b.u ON t.id = u.id WHEN MATCHED THEN DELETE"
    )

    assert isinstance(found, Merge)
    assert (found.source, found.alias) == ("SELECT * FROM b.u", "u")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (1, SqlError),
        ("", SqlError),
        ("CREATE TABLE a.t (id INT)", SqlUnsupported),
        ("DELETE FROM a.t WHERE k = 'a\\'b'", SqlUnsupported),
        ("INSERT INTO a.t", SqlError),
        ("INSERT INTO a.t PARTITION (p = 1) SELECT 1", SqlUnsupported),
        ("UPDATE a.t SET n = 1, n = 2", SqlError),
        ("UPDATE a.t SET n", SqlError),
        ("DELETE FROM a.t WHERE id = 1 RETURNING id", SqlError),
        ("MERGE INTO a.t USING b.u ON x WHEN NOT MATCHED THEN DELETE", SqlError),
        ("MERGE INTO a.t USING b.u ON x WHEN MATCHED THEN INSERT *", SqlError),
        ("MERGE INTO a.t USING b.u ON x WHEN NOT MATCHED BY SOURCE THEN UPDATE SET *", SqlError),
        ("MERGE INTO a.t USING b.u ON x WHEN NOT MATCHED THEN INSERT (a, b) VALUES (1)", SqlError),
    ],
)
def test_what_cannot_be_read_is_refused(text: object, kind: type[SqlError]) -> None:
    with pytest.raises(kind):
        parse_spark_statement(text)
