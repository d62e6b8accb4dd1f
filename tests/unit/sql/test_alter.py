"""ALTER TABLE: an action for each change."""

import pytest

from lakebed.model.names import TableName
from lakebed.model.types import Primitive
from lakebed.sql import alterations as alter
from lakebed.sql.statements import (
    AlterTable,
)
from tests.unit.sql.examples import T, read, texts


@pytest.mark.parametrize(
    ("text", "action"),
    [
        (
            "ADD COLUMN a.b INT COMMENT 'x' FIRST",
            alter.AddColumn(
                ("a", "b"), Primitive("int"), comment="x", position=alter.Position(None)
            ),
        ),
        (
            "ADD IF NOT EXISTS a TEXT NOT NULL AFTER b",
            alter.AddColumn(
                ("a",),
                Primitive("string"),
                required=True,
                position=alter.Position("b"),
                if_not_exists=True,
            ),
        ),
        ("DROP COLUMN IF EXISTS a.b CASCADE", alter.DropColumn(("a", "b"), if_exists=True)),
        ("RENAME COLUMN a.b TO c", alter.RenameColumn(("a", "b"), "c")),
        ("RENAME TO u", alter.RenameTable(TableName((), "u"))),
        ("ALTER COLUMN a TYPE BIGINT", alter.SetColumnType(("a",), Primitive("long"))),
        ("ALTER a SET DATA TYPE DOUBLE", alter.SetColumnType(("a",), Primitive("double"))),
        ("ALTER a SET NOT NULL", alter.SetColumnRequired(("a",), True)),
        ("ALTER COLUMN a DROP NOT NULL", alter.SetColumnRequired(("a",), False)),
        ("ALTER a DROP DEFAULT", alter.SetColumnDefault(("a",), None)),
        ("ALTER COLUMN a COMMENT 'x'", alter.SetColumnComment(("a",), "x")),
        ("ALTER COLUMN a AFTER b", alter.MoveColumn(("a",), alter.Position("b"))),
        ("COMMENT 'x'", alter.SetTableComment("x")),
        ("SET TBLPROPERTIES ('a' = 'b', c.d = 5)", alter.SetProperties((("a", "b"), ("c.d", "5")))),
        ("UNSET TBLPROPERTIES IF EXISTS ('a', b)", alter.UnsetProperties(("a", "b"), True)),
        ("DROP CONSTRAINT IF EXISTS c", alter.DropConstraint("c", True)),
        ("ADD PRIMARY KEY (a, b)", alter.SetPrimaryKey(("a", "b"))),
        ("SET IDENTIFIER FIELDS a, b", alter.SetPrimaryKey(("a", "b"))),
        ("DROP PRIMARY KEY", alter.SetPrimaryKey(())),
        ("ADD PARTITION FIELD day(ts)", alter.AddPartitionField("day(ts)")),
        (
            "ADD PARTITION FIELD bucket(16, id) AS shard",
            alter.AddPartitionField("bucket(16, id)", "shard"),
        ),
        ("DROP PARTITION FIELD shard", alter.DropPartitionField("shard")),
        (
            "REPLACE PARTITION FIELD ts_day WITH hour(ts) AS h",
            alter.ReplacePartitionField("ts_day", "hour(ts)", "h"),
        ),
        ("PARTITIONED BY (a, day(b))", alter.SetPartitioning(("a", "day(b)"))),
        ("WRITE LOCALLY ORDERED BY a DESC, b", alter.SetSortOrder(("a desc", "b"))),
        ("WRITE UNORDERED", alter.SetSortOrder(())),
        (
            (
                "CREATE BRANCH IF NOT EXISTS b AS OF VERSION 3 RETAIN 2 DAYS"
                " WITH SNAPSHOT RETENTION 5 SNAPSHOTS 1 HOURS"
            ),
            alter.CreateRef(
                "branch",
                "b",
                3,
                if_not_exists=True,
                retain_ms=172_800_000,
                keep_snapshots=5,
                keep_snapshots_ms=3_600_000,
            ),
        ),
        ("CREATE OR REPLACE TAG q3", alter.CreateRef("tag", "q3", or_replace=True)),
        ("REPLACE TAG q3 AS OF VERSION 'b'", alter.CreateRef("tag", "q3", "b", or_replace=True)),
        ("DROP BRANCH IF EXISTS b", alter.DropRef("branch", "b", True)),
        ("DROP TAG q3", alter.DropRef("tag", "q3")),
    ],
)
def test_alter_table_has_an_action_for(text: str, action: alter.Alteration) -> None:
    statement = read(f"ALTER TABLE s.t {text}")

    assert isinstance(statement, AlterTable)
    assert (statement.name, statement.actions) == (T, (action,))


def test_alter_table_takes_several_actions_and_expressions() -> None:
    statement = read(
        "ALTER TABLE IF EXISTS s.t ADD COLUMNS (a INT, b TEXT), ALTER c SET DEFAULT f(1, 2),"
        " ADD CONSTRAINT k CHECK (a > 0 AND b IN ('x', 'y')), DROP COLUMNS (d, e)"
    )

    assert isinstance(statement, AlterTable)
    assert statement.if_exists
    a, b, default, check, d, e = statement.actions
    assert isinstance(default, alter.SetColumnDefault)
    assert texts(default.default) == ["f(1, 2)"]
    assert isinstance(check, alter.AddCheck)
    assert (check.name, check.condition.sql) == ("k", "a > 0 AND b IN ('x', 'y')")
    assert [x.path for x in (a, b, d, e)] == [("a",), ("b",), ("d",), ("e",)]  # type: ignore[union-attr]
