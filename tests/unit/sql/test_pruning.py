"""Conditions that reach a single table never change an answer, whatever the joins around it."""

from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from uuid import UUID

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakebed.engines.arrow.evaluate import matches
from lakebed.engines.arrow.types import to_arrow
from lakebed.model.expressions import TRUE, Compare, Predicate
from lakebed.model.schema import new_schema
from lakebed.model.schema_text import parse_schema
from lakebed.sql.parse import parse_script
from lakebed.sql.query import Select
from lakebed.sql.statements import Delete, Merge, Update
from lakebed.sql.where import where_of

SCHEMA = new_schema(parse_schema("id long, k long, s string"))
ROWS = [(1, 1, "a"), (2, None, "b"), (3, 2, None), (None, 1, "a"), (4, 2, "ab"), (5, None, None)]
TABLES = {
    name: pa.Table.from_pylist(
        [dict(zip(("id", "k", "s"), row, strict=True)) for row in rows], to_arrow(SCHEMA)
    )
    for name, rows in {"a": ROWS[:4], "b": ROWS[1:], "c": ROWS[::2]}.items()
}
JOINS = ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN", "ASOF JOIN"]


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        for name, rows in TABLES.items():
            connection.register(name, rows)
        yield connection


def conditions(*tables: str) -> st.SearchStrategy[str]:
    def column(name: str) -> st.SearchStrategy[str]:
        return st.sampled_from([f"{table}.{name}" for table in tables])

    number = st.integers(0, 5).map(str) | st.just("NULL")
    sign = st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM"])
    ids = column("id") | column("k")
    leaves = st.one_of(
        st.tuples(ids, sign, number).map(" ".join),
        st.tuples(number, sign, ids).map(" ".join),
        st.tuples(ids | column("s"), st.sampled_from(["IS NULL", "IS NOT NULL"])).map(" ".join),
        st.tuples(ids, st.sampled_from(["IN (1, 2)", "NOT IN (2, NULL)", "BETWEEN 2 AND 4"])).map(
            " ".join
        ),
        st.tuples(
            column("s"), st.sampled_from(["LIKE 'a%'", "= 'a'", "NOT LIKE '%b'", "> 'a'"])
        ).map(" ".join),
        st.tuples(ids, sign, ids).map(" ".join),
    )
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from([" AND ", " OR "]), inner).map(
                lambda parts: f"({''.join(parts)})"
            ),
            inner.map(lambda text: f"NOT ({text})"),
        ),
        max_leaves=4,
    )


@st.composite
def queries(draw: st.DrawFn) -> str:
    visible = ["a"]
    text = "a"
    for table in ("b", "c")[: draw(st.integers(1, 2))]:
        join = draw(st.sampled_from(JOINS))
        on = f"{draw(st.sampled_from(visible))}.id >= {table}.id"
        if join != "ASOF JOIN":
            on = draw(conditions(*visible, table)) + draw(
                st.sampled_from(["", f" AND a.k = {table}.k"])
            )
        text += f" {join} {table} ON {on}"
        if join not in ("SEMI JOIN", "ANTI JOIN"):
            visible.append(table)
    shown = ", ".join(f"{table}.{name}" for table in visible for name in ("id", "k"))
    where = draw(conditions(*visible))
    more = draw(conditions(*visible))
    return f"SELECT {shown} FROM {text} WHERE {where} AND {more}"


@given(sql=queries())
@settings(max_examples=150, deadline=None)
def test_answers_stay_the_same_when_tables_hold_only_the_rows_asked_for(
    engine: duckdb.DuckDBPyConnection, sql: str
) -> None:
    (select,) = parse_script(sql)
    assert isinstance(select, Select)
    for table in select.tables:
        predicate = where_of(table.where, SCHEMA, {})
        rows = TABLES[table.name.name].combine_chunks()
        kept = [batch.filter(matches(predicate, batch)) for batch in rows.to_batches()]
        engine.register(table.placeholder, pa.Table.from_batches(kept, rows.schema))

    wanted = sorted(map(repr, engine.execute(sql).fetchall()))
    assert sorted(map(repr, engine.execute(select.sql).fetchall())) == wanted


def pruned_by(sql: str, table: str = "a", parameters: dict[str, object] | None = None) -> Predicate:
    (select,) = parse_script(sql)
    assert isinstance(select, Select)
    (found,) = [t for t in select.tables if t.alias == table]
    return where_of(found.where, SCHEMA, parameters or {})


@pytest.mark.parametrize(
    "sql",
    [
        "FROM a WHERE id = 2",
        "FROM a, b WHERE a.id = 2",
        "FROM a JOIN b ON a.id = 2",
        "FROM a LEFT JOIN b ON b.id = a.id WHERE a.id = 2",
        "FROM b RIGHT JOIN a ON b.id = a.id WHERE a.id = 2",
        "FROM b LEFT JOIN a ON b.k = a.k AND a.id = 2",
        "FROM b WHERE EXISTS (FROM a WHERE a.id = 2 AND a.k = b.k)",
        "SELECT count(*) FROM a WHERE id = 2 GROUP BY k HAVING count(*) > 1",
        "SELECT row_number() OVER () FROM a WHERE 2 = a.id LIMIT 1",
        "WITH x AS (FROM a WHERE id = 2) FROM x",
        "SELECT * FROM b, (SELECT * FROM a WHERE ((id) = 2)) q",
        "FROM a SEMI JOIN b ON a.id = b.id WHERE a.id = 2",
    ],
)
def test_condition_reaches_the_table(sql: str) -> None:
    assert repr(pruned_by(sql)).count("Compare(") == 1


@pytest.mark.parametrize(
    "sql",
    [
        "FROM b LEFT JOIN a ON b.id = a.id WHERE a.id = 2",
        "FROM a RIGHT JOIN b ON b.id = a.id WHERE a.id = 2",
        "FROM a FULL JOIN b ON b.id = a.id WHERE a.id = 2",
        "FROM a LEFT JOIN b ON a.id = 2",
        "FROM a ANTI JOIN b ON a.id = 2",
        "FROM b ASOF JOIN a ON b.id >= a.id WHERE a.id = 2",
        "FROM a POSITIONAL JOIN b WHERE a.id = 2",
        "FROM a TABLESAMPLE 1 ROWS WHERE id = 2",
        "SELECT * FROM a WHERE id = 2 USING SAMPLE 1",
        "SELECT id FROM a QUALIFY id = 2",
        "SELECT k AS id FROM a GROUP BY k HAVING id = 2",
        "FROM a WHERE id = 2 OR random() > 0.5",
        "FROM a WHERE id + 1 = 2",
        "FROM a WHERE id = 2e0",
        "FROM a AS a(x, id, y) WHERE id = 2",
        "FROM a, b WHERE b.id = 2",
        "FROM (SELECT id FROM a LIMIT 1) q WHERE q.id = 2",
    ],
)
def test_condition_does_not_reach_the_table(sql: str) -> None:
    assert pruned_by(sql) == TRUE


def test_parameters_take_part_when_their_values_are_known() -> None:
    sql = "FROM a WHERE id >= ? AND s = ?"

    predicate = pruned_by(sql, parameters={"1": 3, "2": "x"})
    assert "value=3" in repr(predicate)
    assert "value='x'" in repr(predicate)
    assert "value=3" not in repr(pruned_by(sql, parameters={"1": None, "2": "x"}))
    assert pruned_by(sql, parameters={"1": [3], "2": object()}) == TRUE


@pytest.mark.parametrize(
    ("kind", "value", "stored"),
    [
        ("date", date(2024, 1, 31), 19753),
        ("timestamp", datetime(1970, 1, 1, 1, tzinfo=UTC), 3_600_000_000),
        ("timestamp_ntz", datetime(1970, 1, 1, 1), 3_600_000_000),  # noqa: DTZ001
        ("decimal(5,2)", Decimal("1.50"), Decimal("1.50")),
        ("double", 1.5, 1.5),
        ("boolean", True, True),
        ("uuid", UUID(int=1), UUID(int=1).bytes),
        ("binary", b"x", b"x"),
    ],
)
def test_parameter_of_every_type_is_understood(kind: str, value: object, stored: object) -> None:
    (select,) = parse_script("FROM a WHERE c = $v")
    assert isinstance(select, Select)
    schema = new_schema(parse_schema(f"c {kind}"))

    found = where_of(select.tables[0].where, schema, {"v": value})

    assert [c.value for c in found.operands if isinstance(c, Compare)] == [stored]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("kind", "condition"),
    [
        ("date", "c = '2024-01-31 10:00:00'"),  # the engine drops the time of day
        ("timestamp", "c = '2024-01-31 10:00:00.1234567'"),  # and the seventh digit
        ("float", "c = 0.1"),  # nearest single or nearest double?
        ("string", "c = 5"),  # '05' equals 5
        ("long", "c = '5'"),
        ("long", "c"),  # any number but 0 is true
    ],
)
def test_comparison_that_the_engine_may_read_differently_is_left_out(
    kind: str, condition: str
) -> None:
    (select,) = parse_script(f"FROM a WHERE {condition}")
    assert isinstance(select, Select)

    assert where_of(select.tables[0].where, new_schema(parse_schema(f"c {kind}")), {}) == TRUE


@pytest.mark.parametrize(
    ("sum_", "day"),
    [
        ("DATE '2024-01-31' + INTERVAL 1 MONTH", date(2024, 2, 29)),
        ("DATE '2024-03-31' - INTERVAL '1' YEAR", date(2023, 3, 31)),
        ("DATE '2024-01-01' - INTERVAL 90 DAYS", date(2023, 10, 3)),
        ("CAST('2024-01-01' AS DATE) + INTERVAL '2 weeks'", date(2024, 1, 15)),
    ],
)
def test_day_plus_interval_is_worked_out(sum_: str, day: date) -> None:
    (select,) = parse_script(f"FROM a WHERE c >= {sum_}")
    assert isinstance(select, Select)

    found = where_of(select.tables[0].where, new_schema(parse_schema("c date")), {})

    assert f"value={(day - date(1970, 1, 1)).days}" in repr(found)


def test_like_has_no_escape_unless_one_is_named() -> None:
    found = pruned_by(r"FROM a WHERE s LIKE 'a\%' AND s LIKE 'b!%' ESCAPE '!'")

    assert r"pattern='a\\\\%'" in repr(found)
    assert "value='b%'" in repr(found)


def test_targets_are_pruned_by_what_concerns_them_alone() -> None:
    update, delete, merge, full = parse_script(
        """UPDATE n.a SET k = 1 FROM b WHERE n.a.id = 2 AND b.id = 3 AND a.k = b.k;
        DELETE FROM a AS x USING b WHERE x.id = 2 AND id = 1 AND b.k = 1;
        MERGE INTO a t USING b ON t.id = b.id AND t.k = 5 WHEN MATCHED THEN DELETE;
        MERGE INTO a t USING b ON t.k = 5 WHEN NOT MATCHED BY SOURCE THEN DELETE"""
    )

    assert isinstance(update, Update)
    assert isinstance(delete, Delete)
    assert isinstance(merge, Merge)
    assert isinstance(full, Merge)
    assert [str(c.predicate.column) for c in update.target.where] == ["id"]  # type: ignore[union-attr]
    assert [str(c.predicate.column) for c in delete.target.where] == ["id", "id"]  # type: ignore[union-attr]
    assert [str(c.predicate.column) for c in merge.target.where] == ["k"]  # type: ignore[union-attr]
    assert full.target.where == ()
