"""INSERT, UPDATE, DELETE, MERGE, TRUNCATE and COPY as values."""

import pytest

from lakebed.model.errors import SqlError
from lakebed.sql.defaults import with_defaults
from lakebed.sql.parse import parse_script
from lakebed.sql.query import Parameter
from lakebed.sql.statements import (
    CopyFrom,
    CopyTo,
    Delete,
    Insert,
    Merge,
    Update,
)
from tests.unit.sql.examples import T, read, texts


def test_insert_takes_values_queries_and_names() -> None:
    values = read("INSERT INTO s.t@dev (a, b.c) VALUES (1, ?), (2, 'x')")
    named = read("WITH x AS (FROM u) INSERT INTO s.t BY NAME SELECT * FROM x")
    plain = read("INSERT INTO TABLE t (SELECT 1)")

    assert isinstance(values, Insert)
    assert (values.target.name, values.target.branch) == (T, "dev")
    assert values.columns == (("a",), ("b", "c"))
    assert values.source.sql == "VALUES (1, $1), (2, 'x')"
    assert isinstance(named, Insert)
    assert named.by_name
    assert " ".join(named.source.sql.split()) == (
        'WITH x AS (FROM "__lakebed_1" AS "u") SELECT * FROM x'
    )
    assert isinstance(plain, Insert)
    assert plain.columns is None


def test_rows_of_literals_are_taken_as_they_are() -> None:
    many = ", ".join(["(1, -2.5, 'it''s', NULL, DATE '2024-01-01', $p)"] * 5_000)
    insert = read(f"INSERT INTO s.t VALUES {many} -- all")

    assert isinstance(insert, Insert)
    assert insert.source.sql == f"VALUES {many}"
    assert insert.source.parameters == ("p",)
    for odd in ("VALUES (1", "VALUES 1", "VALUES (1)) x", "VALUES (1, (2)"):
        with pytest.raises(SqlError):
            parse_script(f"INSERT INTO t {odd}")


def test_insert_overwrite_says_what_is_replaced() -> None:
    whole = read("INSERT OVERWRITE TABLE t SELECT 1")
    part = read("INSERT OVERWRITE t PARTITION (day = DATE '2024-01-01', hour) SELECT 1")
    where = read("INSERT INTO t REPLACE WHERE day = '2024-01-01' SELECT 1")

    assert isinstance(whole, Insert)
    assert whole.overwrite
    assert isinstance(part, Insert)
    assert [(p.column, texts(p.value)) for p in part.partition] == [
        ("day", ["DATE '2024-01-01'"]),
        ("hour", [None]),
    ]
    assert isinstance(where, Insert)
    assert where.overwrite
    assert texts(where.replace_where) == ["day = '2024-01-01'"]


def test_update_holds_expressions_over_its_relations() -> None:
    update = read(
        "UPDATE s.t SET a = s.t.a + 1, t.b = CASE WHEN x THEN (SELECT max(k) FROM u) END,"
        " c.d = DEFAULT, e = n.f FROM more.names AS n WHERE t.id = n.id AND t.z IN (FROM w)"
    )

    assert isinstance(update, Update)
    assert [(a.path, texts(a.value)) for a in update.assignments] == [
        (("a",), ['"t".a + 1']),
        (("b",), ['CASE WHEN x THEN (SELECT max(k) FROM "__lakebed_1" AS "u") END']),
        (("c", "d"), [None]),
        (("e",), ["n.f"]),
    ]
    assert texts(update.source, update.where) == [
        '"__lakebed_2" AS n',
        't.id = n.id AND t.z IN (FROM "__lakebed_3" AS "w")',
    ]
    assert update.where is not None
    assert update.source is not None
    assert [str(t.name) for t in (*update.where.tables, *update.source.tables)] == [
        "w",
        "more.names",
    ]


def test_delete_holds_its_condition() -> None:
    delete = read("DELETE FROM s.t AS x USING u JOIN v USING (k) WHERE x.id = u.id")
    everything = read("DELETE FROM s.t")

    assert isinstance(delete, Delete)
    assert delete.target.alias == "x"
    assert texts(delete.where, delete.source) == [
        "x.id = u.id",
        '"__lakebed_1" AS "u" JOIN "__lakebed_2" AS "v" USING (k)',
    ]
    assert isinstance(everything, Delete)
    assert everything.where is None


def test_merge_has_a_clause_for_each_kind_of_row() -> None:
    merge = read(
        """MERGE INTO s.t AS t USING (SELECT * FROM u WHERE ok) AS s ON t.id = s.id
        WHEN MATCHED AND s.op = CASE WHEN true THEN 'D' END THEN DELETE
        WHEN MATCHED THEN UPDATE SET t.a = s.a, b = DEFAULT
        WHEN NOT MATCHED BY TARGET AND s.op <> 'D' THEN INSERT (id, a) VALUES (s.id, DEFAULT)
        WHEN NOT MATCHED BY SOURCE AND t.old THEN UPDATE SET a = 0
        WHEN NOT MATCHED BY SOURCE THEN DELETE"""
    )

    assert isinstance(merge, Merge)
    assert (merge.source.sql, merge.source_alias) == (
        'SELECT * FROM (SELECT * FROM "__lakebed_1" AS "u" WHERE ok) AS s',
        "s",
    )
    assert texts(merge.on) == ["t.id = s.id"]
    assert [(c.kind, c.action) for c in merge.clauses] == [
        ("matched", "delete"),
        ("matched", "update"),
        ("not_matched", "insert"),
        ("not_matched_by_source", "update"),
        ("not_matched_by_source", "delete"),
    ]
    assert texts(*(c.condition for c in merge.clauses)) == [
        "s.op = CASE WHEN true THEN 'D' END",
        None,
        "s.op <> 'D'",
        "t.old",
        None,
    ]
    assert [(a.path, texts(a.value)) for a in merge.clauses[1].assignments] == [
        (("a",), ["s.a"]),
        (("b",), [None]),
    ]
    assert merge.clauses[2].columns == (("id",), ("a",))
    assert texts(*merge.clauses[2].values) == ["s.id", None]


def test_merge_has_short_forms() -> None:
    merge = read(
        "MERGE WITH SCHEMA EVOLUTION INTO t USING more.rows USING (id, k)"
        " WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    nothing = read("MERGE INTO t USING u s ON true WHEN MATCHED THEN DO NOTHING")

    assert isinstance(merge, Merge)
    assert merge.merge_schema
    assert texts(merge.on) == ['"t"."id" = "rows"."id" AND "t"."k" = "rows"."k"']
    assert [c.action for c in merge.clauses] == ["update_all", "insert_all"]
    assert isinstance(nothing, Merge)
    assert nothing.clauses[0].action == "nothing"


def test_several_columns_are_set_by_a_row() -> None:
    update = read("UPDATE t SET (a, t.b) = (1, DEFAULT), c = 2, (d, e) = (SELECT x, y FROM u)")

    assert isinstance(update, Update)
    assert [a.path for a in update.assignments] == [("a",), ("b",), ("c",), ("d",), ("e",)]
    assert texts(*(a.value for a in update.assignments)) == [
        "1",
        None,
        "2",
        '(SELECT c0 FROM (SELECT x, y FROM "__lakebed_1" AS "u"\n) AS one_row(c0, c1))',
        '(SELECT c1 FROM (SELECT x, y FROM "__lakebed_1" AS "u"\n) AS one_row(c0, c1))',
    ]


def test_default_stands_for_a_whole_value() -> None:
    insert = read("INSERT INTO t VALUES (1, DEFAULT), (DEFAULT, [2, 3])")
    plain = read("INSERT INTO t VALUES (1, 'DEFAULT')")

    assert isinstance(insert, Insert)
    assert insert.has_defaults
    assert with_defaults(insert.source, ["7", "NULL"]).sql == "VALUES (1, NULL), (7, [2, 3])"
    assert isinstance(plain, Insert)
    assert not plain.has_defaults


def test_queries_of_with_are_known_to_the_statement() -> None:
    delete = read("WITH x AS (FROM u), y(a) AS (FROM x) DELETE FROM t WHERE i IN (SELECT a FROM y)")

    assert isinstance(delete, Delete)
    assert delete.where is not None
    (table,) = delete.where.tables
    assert table.query is not None
    assert table.query.sql == 'SELECT * FROM (FROM "__lakebed_2" AS "x") AS renamed ("a")'
    (inner,) = table.query.tables
    assert inner.query is not None
    assert inner.query.sql == 'FROM "__lakebed_1" AS "u"'
    assert inner.query.tables[0].query is None


def test_conditions_on_joined_relations_alone_are_told_apart() -> None:
    joined = "UPDATE t SET a = 1 FROM u, v WHERE {}"
    for condition, expected in (
        ("t.id = u.id AND u.k = v.k", ["u.k = v.k"]),
        ("t.id = u.id AND u.k = v.k AND v.i = u.i", ["u.k = v.k", "v.i = u.i"]),
        ("t.id = u.id OR t.x = 1 AND u.k = v.k", []),
        ("t.id BETWEEN u.k AND v.k", []),
        ("t.id = u.id", []),
    ):
        update = read(joined.format(condition))
        assert isinstance(update, Update)
        assert texts(*update.source_where) == expected


@pytest.mark.parametrize(
    "sql",
    [
        "MERGE INTO t USING u ON true",
        "MERGE INTO t USING u ON true WHEN MATCHED THEN INSERT *",
        "MERGE INTO t USING u ON true WHEN NOT MATCHED THEN DELETE",
        "MERGE INTO t USING u ON true WHEN NOT MATCHED BY SOURCE THEN UPDATE SET *",
        "MERGE INTO t USING u ON true WHEN NOT MATCHED THEN INSERT (a, b) VALUES (1)",
        "MERGE INTO t USING (SELECT 1) ON true WHEN MATCHED THEN DELETE",
        "MERGE INTO t USING a JOIN b ON true WHEN MATCHED THEN DELETE",
        "UPDATE t SET a = 1 b = 2",
        "UPDATE t SET a = ",
        "UPDATE t SET (a, b) = (1, 2, 3)",
        "UPDATE t SET (a, b) = 1",
        "UPDATE t SET (a, b) = (SELECT 1)",
        "UPDATE t SET (a, b) = (SELECT * FROM u)",
        "UPDATE t SET () = ()",
        "UPDATE t SET a = 1 RETURNING *",
        "DELETE FROM t WHERE",
        "DELETE FROM t WHERE a = 1 LIMIT 5",
        "DELETE FROM t WHERE a = 1) OR (b = 2",
        "DELETE FROM t WHERE a = 1 FROM u",
        "INSERT INTO t DEFAULT VALUES",
        "INSERT INTO t VALUES (abs(DEFAULT))",
        "INSERT INTO t SELECT a, (DEFAULT) FROM u",
        "INSERT INTO t SELECT 1 ON CONFLICT DO NOTHING",
        "INSERT INTO t",
        "WITH RECURSIVE x AS (DELETE FROM u) DELETE FROM t",
        "WITH RECURSIVE x(a AS (SELECT 1) DELETE FROM t",
        "WITH x AS (SELECT 1), x AS (SELECT 2) DELETE FROM t",
        "WITH x AS (DELETE FROM u) DELETE FROM t",
        "WITH x (a b) AS (SELECT 1) UPDATE t SET a = 1",
        "COPY t FROM x.csv",
        "COPY (DELETE FROM t) TO 'x'",
        "TRUNCATE t u",
    ],
)
def test_odd_changes_of_rows_are_refused(sql: str) -> None:
    with pytest.raises(SqlError):
        parse_script(sql)


def test_copy_names_files_formats_and_options() -> None:
    loaded = read("COPY s.t (a, b) FROM 'in.csv.gz' WITH (HEADER, DELIM ';', nulls ['', '-'])")
    spark = read("COPY INTO s.t FROM ? FILEFORMAT = PARQUET FORMAT_OPTIONS ('mergeSchema' = 'x')")
    table = read("COPY s.t (a, \"b c\") TO 'out.parquet' (compression zstd)")
    query = read("COPY (SELECT * FROM s.t WHERE a = 1) TO 'out.json' (FORMAT json)")

    assert isinstance(loaded, CopyFrom)
    assert (loaded.path, loaded.format, loaded.columns) == ("in.csv.gz", "csv", (("a",), ("b",)))
    assert loaded.options == (("header", True), ("delim", ";"), ("nulls", ("", "-")))
    assert isinstance(spark, CopyFrom)
    assert (spark.path, spark.format) == (Parameter("1"), "parquet")
    assert isinstance(table, CopyTo)
    assert (table.format, table.options) == ("parquet", (("compression", "zstd"),))
    assert table.source.sql == 'SELECT "a", "b c" FROM "__lakebed_1"'
    assert isinstance(query, CopyTo)
    assert query.source.tables[0].name == T
