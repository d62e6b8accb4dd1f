"""CHECK constraints: what they may say, and that no row gets around them."""

from datetime import UTC, date, datetime
from pathlib import Path
from uuid import UUID

import duckdb
import orjson
import pytest

import lakebed
from lakebed.model.errors import (
    CommitConflict,
    ConstraintViolated,
    InvalidInput,
    InvalidSchema,
    UnsupportedFeature,
)
from lakebed.model.functions import is_changing


def _rows(table: lakebed.Table) -> list[dict[str, object]]:
    return sorted(table.to_arrow().to_pylist(), key=lambda row: int(row["id"]))


def test_no_write_may_make_a_constraint_false(lake: lakebed.Lake) -> None:
    table = lake.create_table("s.t", "id long, n int", constraints={"positive": "n > 0"})
    table.append([{"id": 1, "n": 1}, {"id": 2, "n": None}])

    for write in (table.append, table.overwrite):
        with pytest.raises(ConstraintViolated, match="row 2 violates constraint 'positive'"):
            write([{"id": 3, "n": 3}, {"id": 4, "n": 0}])

    assert [row["id"] for row in _rows(table)] == [1, 2]
    assert dict(table.constraints) == {"positive": "n > 0"}
    table.alter().drop_constraint("positive").commit()
    table.append([{"id": 4, "n": 0}])
    assert lake.check().clean


def test_no_constraint_takes_the_place_of_another(lake: lakebed.Lake) -> None:
    with pytest.raises(InvalidSchema, match="two constraints are called 'Low'"):
        lake.create_table("s.t", "n int", constraints={"low": "n > 0", "Low": "n > 1"})

    assert lake.tables() == []


def test_rows_there_are_must_pass_a_new_constraint(lake: lakebed.Lake) -> None:
    table = lake.create_table("s.t", [{"id": 1, "n": 0}, {"id": 2, "n": None}])

    with pytest.raises(ConstraintViolated, match="n = 0"):
        table.alter().add_constraint("positive", "n > 0").commit()
    table.alter().add_constraint("natural", "n >= 0").commit()

    assert (table.version, list(table.constraints)) == (1, ["natural"])


def test_rows_written_meanwhile_have_not_passed_a_constraint(lake: lakebed.Lake) -> None:
    table = lake.create_table("s.t", "id long, n int")
    with lake.transaction() as tx:
        tx.table("s.t").alter().add_constraint("positive", "n > 0").commit()
        table.append([{"id": 1, "n": -1}])
        with pytest.raises(CommitConflict, match="not looked at"):
            tx.commit()
    table.overwrite([{"id": 1, "n": 1}])
    with lake.transaction() as tx:
        tx.table("s.t").append([{"id": 2, "n": -1}])
        table.alter().add_constraint("positive", "n > 0").commit()
        with pytest.raises(CommitConflict, match="not passed"):
            tx.commit()
    assert [row["n"] for row in _rows(table)] == [1]


def test_columns_of_a_constraint_stay_what_they_are(lake: lakebed.Lake) -> None:
    table = lake.create_table("s.t", "id long, s struct<n: int, m: int>")
    table.alter().add_constraint("positive", "s.n > 0").commit()

    for name in ("s.n", "s"):
        with pytest.raises(InvalidSchema, match="positive"):
            table.alter().rename_column(name, "k")
        with pytest.raises(InvalidSchema, match="positive"):
            table.alter().drop_column(name)
    table.alter().drop_column("s.m").commit()


@pytest.mark.parametrize(
    ("name", "condition"),
    [
        ("", "n > 0"),
        (" a", "n > 0"),
        ("c", "1 = 1"),
        ("c", "nope > 0"),
        ("c", "n >"),
        ("c", "n + 1 > nope"),
        ("c", "abs(n) > 1;"),
        ("c", "n > 0) OR (abs(n) > 1"),
        ("c", "abs(n)"),
        ("c", "length(n) = now()"),
        ("c", "abs(n) > random()"),
        ("c", "abs(n) > extract(year FROM current_date)"),
        ("c", "t = current_user"),
        ("c", "t = getenv('HOME')"),
        ("c", "t = current_setting('threads')"),
        ("c", "abs(n) > nextval('x')"),
        ("c", "sum(n) > 0"),
        ("c", "n > count(*)"),
        ("c", "row_number() OVER () > n"),
        ("c", "n > (SELECT 1)"),
        ("c", "EXISTS (SELECT n)"),
        ("c", "abs(n) > ?"),
        ("c", "abs(n) > $a"),
        ("C0", "n > 1"),
        (5, "n > 0"),
        ("c", 5),
    ],
)
def test_what_is_no_constraint_is_refused(
    lake: lakebed.Lake, name: object, condition: object
) -> None:
    table = lake.create_table("s.t", "id long, n int, t string", constraints={"c0": "n > 0"})

    with pytest.raises(InvalidInput):
        table.alter().add_constraint(name, condition).commit()  # type: ignore[arg-type]

    assert table.version == 0


# --- any expression of one row --------------------------------------------------------------------


@pytest.fixture
def ranges(lake: lakebed.Lake) -> lakebed.Table:
    table = lake.create_table(
        "s.t",
        "id long, a int, b int, name string",
        constraints={"ordered": "a < b", "named": "length(name) > 0 AND a * b >= 0"},
    )
    table.append([{"id": 1, "a": 1, "b": 2, "name": "x"}, {"id": 2, "b": 2}])
    return table


def test_every_way_to_write_is_checked_by_expressions_too(ranges: lakebed.Table) -> None:
    bad = [{"id": 3, "a": 3, "b": 4, "name": "x"}, {"id": 4, "a": 3, "b": 2, "name": "x"}]
    for write in (ranges.append, ranges.overwrite):
        with pytest.raises(ConstraintViolated, match=r"row 2 violates .*'ordered': a = 3, b = 2"):
            write(bad)
    with pytest.raises(ConstraintViolated, match="'named': a = 1, b = 2, name = ''"):
        ranges.update({"name": "''"}, "id = 1")
    with pytest.raises(ConstraintViolated, match="ordered"):
        ranges.merge(bad, "t.id = s.id").when_not_matched_insert_all().execute()
    with pytest.raises(ConstraintViolated, match="ordered"):
        ranges.apply_changes([{**bad[1], "_op": "INSERT"}], key="id")

    assert (ranges.version, [row["id"] for row in _rows(ranges)]) == (1, [1, 2])


def test_null_passes_an_expression(ranges: lakebed.Table) -> None:
    ranges.append([{"id": 3, "a": None, "b": 1, "name": None}])

    assert ranges.to_arrow().num_rows == 3


def test_rows_there_are_must_pass_a_new_expression(ranges: lakebed.Table) -> None:
    with pytest.raises(ConstraintViolated, match=r"a row of the table violates .* a = 1, b = 2"):
        ranges.alter().add_constraint("small", "a + b < 3").commit()
    ranges.alter().add_constraint("small", "a + b < 4").commit()

    assert ranges.version == 2


def test_columns_of_an_expression_stay_what_they_are(ranges: lakebed.Table) -> None:
    for name in ("a", "b", "name"):
        with pytest.raises(InvalidSchema, match="looks at column"):
            ranges.alter().drop_column(name)


def test_a_row_for_which_an_expression_fails_is_not_written(lake: lakebed.Lake) -> None:
    table = lake.create_table("s.t", "id long, t string", formats="iceberg")
    table.alter().add_constraint("number", "CAST(t AS INT) > 0").commit()

    with pytest.raises(ConstraintViolated, match="'number' has no answer"):
        table.append([{"id": 1, "t": "one"}])


def test_expressions_see_every_type_as_queries_do(lake: lakebed.Lake) -> None:
    table = lake.create_table(
        "s.t",
        "id long, u uuid, d date, ts timestamp, l array<int>, s struct<u: uuid>, n timestamp_ns",
        formats="iceberg",
        constraints={
            "u": "u::text LIKE '0000%' OR s.u::text LIKE '0000%'",
            "d": "d - DATE '2024-01-01' < 10",
            "ts": "date_trunc('day', ts) = ts",
            "l": "list_sum(l) > 0 AND list_filter(l, lambda x: x > id) = []",
        },
    )
    good = {
        "id": 5,
        "u": UUID(int=1),
        "d": date(2024, 1, 5),
        "ts": datetime(2024, 1, 5, tzinfo=UTC),
        "l": [1, 2],
        "s": {"u": None},
    }
    table.append([good])

    for column, value in (
        ("u", UUID(int=2**127)),
        ("d", date(2024, 2, 5)),
        ("ts", datetime(2024, 1, 5, 1, tzinfo=UTC)),
        ("l", [6]),
    ):
        row = {**good, column: value, "s": {"u": UUID(int=1 if column != "u" else 2**127)}}
        with pytest.raises(ConstraintViolated, match=f"'{column}'"):
            table.append([row])


def test_delta_shows_constraints_in_the_sql_of_spark(tmp_path: Path) -> None:
    with lakebed.open(tmp_path / "lake", create=True) as lake:
        lake.create_table(
            "s.t",
            "id long, a int, b int, name string, d date, s struct<x: int>",
            constraints={
                "plain": "a > 0",
                "quoted": "\"name\" <> 'it''s a \\ here' -- why",
                "ordered": "a < b AND s.x >= b",
                "long": "length(trim(name)) BETWEEN 1 AND 10",
                "days": "year(d) >= 2000 AND d > '2000-05-05'",
                "case": "CASE WHEN a > b THEN coalesce(a, 0) ELSE b END % 2 = 0",
            },
        )
    (log,) = tmp_path.rglob("_delta_log/00000000000000000000.json")
    actions = [orjson.loads(line) for line in log.read_text().splitlines()]
    shown = next(a["metaData"]["configuration"] for a in actions if "metaData" in a)

    assert {k.rpartition(".")[2]: v for k, v in shown.items() if "constraints" in k} == {
        "plain": "(a > 0) IS NOT FALSE",
        "quoted": "(`name` <> 'it\\'s a \\\\ here') IS NOT FALSE",
        "ordered": "(`a` < `b` AND `s`.`x` >= `b`) IS NOT FALSE",
        "long": "(LENGTH(TRIM(`name`)) BETWEEN 1 AND 10) IS NOT FALSE",
        "days": "(YEAR(`d`) >= 2000 AND `d` > '2000-05-05') IS NOT FALSE",
        "case": "(CASE WHEN `a` > `b` THEN COALESCE(`a`, 0) ELSE `b` END % 2 = 0) IS NOT FALSE",
    }


@pytest.mark.parametrize(
    "condition",
    [
        "name ~ 'a.*'",  # the whole text here, a part of it there
        "regexp_matches(name, 'a')",
        "a // b > 1",
        "a & 1 = 0",
        "d - e < 30",
        "length(l) > 0",
        "strlen(name) > 0",
        "substring(name, 0, 2) = 'a'",
        "trim(name, 'x') = name",
        "TRY_CAST(name AS INT) > 0",
        "name LIKE 'a\\%' AND a < b",
        "list_sum(l) > 0",
        "year(ts) > 2000",
    ],
)
def test_what_spark_would_read_otherwise_is_refused_where_delta_is_published(
    lake: lakebed.Lake, condition: str
) -> None:
    columns = "id long, a int, b int, name string, d date, e date, l array<int>, ts timestamp"
    both = lake.create_table("s.both", columns)
    with pytest.raises(UnsupportedFeature, match="Spark"):
        both.alter().add_constraint("c", condition).commit()
    with pytest.raises(UnsupportedFeature, match="Spark"):
        lake.create_table("s.other", columns, constraints={"c": condition})

    alone = lake.create_table("s.iceberg", columns, formats="iceberg", constraints={"c": condition})
    with pytest.raises(UnsupportedFeature, match="Spark"):
        alone.set_formats("delta,iceberg")
    assert (both.version, alone.version, alone.constraints) == (0, 0, {"c": condition})


def test_every_function_that_the_engine_calls_unsteady_is_known() -> None:
    with duckdb.connect() as engine:
        found = engine.execute(
            "SELECT DISTINCT function_name FROM duckdb_functions()"
            " WHERE function_type = 'scalar' AND stability <> 'CONSISTENT'"
        ).fetchall()

    assert [name for (name,) in found if not is_changing(name)] == []
