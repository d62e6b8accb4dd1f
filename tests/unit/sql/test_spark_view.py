"""Views in the SQL of Spark: the same rows, or a refusal that says why."""

import pytest

from lakebed.model.errors import SqlUnsupported
from lakebed.model.names import TableName
from lakebed.model.schema_text import parse_schema
from lakebed.model.views import View
from lakebed.sql.spark import Path
from lakebed.sql.spark_view import Column, view_in_spark

TABLES = {
    ("s", "t"): "id long, n int, small short, m decimal(9,2), k string, ts timestamp, x double,"
    " o struct<a: int>, l list<int>",
    ("s", "u"): "id long, name string",
    ("a", "b", "c"): "id long",
}


def columns_of(path: Path) -> list[Column]:
    return [(field.name, field.type) for field in parse_schema(TABLES[path])]


def in_spark(sql: str, *columns: str) -> str:
    named = tuple((name, None) for name in columns)
    view = View(TableName(("s",), "v"), sql, ("s",), named)
    return view_in_spark(view, columns_of).query


@pytest.mark.parametrize(
    ("sql", "spark"),
    [
        ("SELECT id, k AS key FROM s.t", "SELECT `id`, `k` AS `key` FROM `s`.`t` AS `t`"),
        ("FROM t WHERE n > 1", "SELECT * FROM `s`.`t` AS `t` WHERE `n` > 1"),
        ("SELECT id FROM a.b.c ORDER BY id", "SELECT `id` FROM `a`.`b`.`c` AS `c`"),
        ("SELECT n + 1 AS m, o.a FROM t", "SELECT `n` + 1 AS `m`, `o`.`a` FROM `s`.`t` AS `t`"),
        ("SELECT x * 1.5 AS y FROM t AS z", "SELECT `x` * 1.5 AS `y` FROM `s`.`t` AS `z`"),
        (
            "SELECT u.* FROM t LEFT JOIN u ON t.id = u.id",
            "SELECT `u`.* FROM `s`.`t` AS `t` LEFT JOIN `s`.`u` AS `u` ON `t`.`id` = `u`.`id`",
        ),
        (
            "SELECT count(*) AS c, count(DISTINCT n) AS d FROM t GROUP BY k",
            "SELECT COUNT(*) AS `c`, COUNT(DISTINCT `n`) AS `d` FROM `s`.`t` AS `t` GROUP BY `k`",
        ),
        (
            "SELECT sum(m) AS s, max(ts) AS z FROM t",
            "SELECT SUM(`m`) AS `s`, MAX(`ts`) AS `z` FROM `s`.`t` AS `t`",
        ),
        ("SELECT DISTINCT k FROM t", "SELECT DISTINCT `k` FROM `s`.`t` AS `t`"),
    ],
)
def test_what_spark_understands_is_said(sql: str, spark: str) -> None:
    assert in_spark(sql) == spark


def test_columns_of_the_view_name_those_of_the_query() -> None:
    assert in_spark("SELECT id, n FROM t", "a`b", "c") == (
        "SELECT * FROM (SELECT `id`, `n` FROM `s`.`t` AS `t`) AS `renamed`(`a``b`, `c`)"
    )


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELECT 1 AS one", "no table"),
        ("SELECT m / 2 AS h FROM t", "m / 2"),
        ("SELECT id FROM t WHERE n / 2 > 1", "n / 2"),
        ("SELECT small + 1 AS h FROM t", "small"),
        ("SELECT m * m AS h FROM t", r"m \* m"),
        ("SELECT n * 1.5 AS h FROM t", "1.5"),
        ("SELECT round(x, 1) AS h FROM t", "ROUND"),
        ("SELECT avg(n) AS h FROM t", "AVG"),
        ("SELECT n + 1 FROM t", "has no name"),
        ("SELECT id FROM t LIMIT 3", "LIMIT"),
        ("SELECT k, count(*) AS c FROM t GROUP BY k HAVING count(*) > 1", "HAVING"),
        ("SELECT id FROM t GROUP BY ALL", "GROUP BY"),
        ("SELECT id FROM t VERSION AS OF 3", "versions"),
        ("SELECT id FROM t@dev", "tables"),
        ("SELECT id FROM t JOIN u USING (id)", "join"),
        ("SELECT id FROM t, u", "ON|several"),
        ("SELECT id FROM t JOIN u ON t.id = u.id", "several"),
        ("SELECT row_number() OVER (ORDER BY id) AS r FROM t", "ROW_NUMBER"),
        ("SELECT * EXCLUDE (id) FROM t", "behind"),
        ("SELECT id FROM t UNION ALL SELECT id FROM u", "one SELECT"),
        ("SELECT id FROM (SELECT id FROM t) AS q", "tables"),
        ("SELECT id FROM t WHERE id IN (SELECT id FROM u)", "IN"),
        ("SELECT nix FROM t", "nix"),
        ("SELECT l[1] AS e FROM t", r"l\[1\]"),
        ("WITH q AS (SELECT 1) SELECT id FROM t", "WITH"),
    ],
)
def test_what_may_mean_something_else_is_refused_with_the_reason(sql: str, reason: str) -> None:
    with pytest.raises(SqlUnsupported, match=reason):
        in_spark(sql)
