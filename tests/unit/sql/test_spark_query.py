"""Tables in queries of Spark's SQL, and columns that are named by them."""

import pytest

from lakebed.sql.spark_query import find_spark_tables, with_names


def renamed(text: str) -> str:
    tables = find_spark_tables(text)
    names = [f"<{table.name}>" for table in tables]
    return "".join(piece + name for piece, name in with_names(text, tables, names))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "SELECT s.t.id, S.T.*, s.t.o.a, t.x FROM s.t WHERE s.t.`date` > 's.t.id'",
            "SELECT `t`.id, `t`.*, `t`.o.a, t.x FROM <s.t> AS `t` WHERE `t`.`date` > 's.t.id'",
        ),
        (
            "SELECT a.t.id FROM a.t JOIN b.t ON a.t.id = b.t.id",
            "SELECT `a.t`.id FROM <a.t> AS `a.t` JOIN <b.t> AS `b.t` ON `a.t`.id = `b.t`.id",
        ),
        ("SELECT s.id FROM s.t AS s -- s.t.id", "SELECT s.id FROM <s.t> AS s -- s.t.id"),
        (
            "SELECT `a b`.`t``x`.id FROM `a b`.`t``x` VERSION AS OF 3",
            "SELECT `t``x`.id FROM <a b.t`x> AS `t``x`",
        ),
        ("SELECT n.s.t.id FROM n.s.t", "SELECT `t`.id FROM <n.s.t> AS `t`"),
        ("SELECT x.s.t.id, id FROM s.t", "SELECT x.s.t.id, id FROM <s.t> AS `t`"),
        ("SELECT 1 FROM n.s.t, n.s", "SELECT 1 FROM <n.s.t> AS `t`, <n.s> AS `s`"),
        ("SELECT id FROM one", "SELECT id FROM one"),
    ],
)
def test_tables_get_names_and_columns_their_aliases(text: str, found: str) -> None:
    assert renamed(text) == found
