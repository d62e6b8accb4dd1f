"""A lake in DataFusion: names, one moment for all tables, filters that reach the files."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import lakebed

ENDS_WHILE_READING = """
import sys
import lakebed
session = lakebed.open(sys.argv[1]).datafusion()
for _ in range(5):
    assert session.sql("SELECT * FROM sales.big LIMIT 3").to_arrow_table().num_rows == 3
"""


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[lakebed.Lake]:
    with lakebed.open(tmp_path / "lake", create=True) as lake:
        lake.create_table("sales.orders", "id long, who string").append(
            [{"id": 1, "who": "ann"}, {"id": 2, "who": "bob"}]
        )
        lake.create_table("sales.north.Orders", "id long").append([{"id": 2}])
        yield lake


def ids(rows: dict[str, list[object]]) -> list[object]:
    return sorted(rows["id"], key=str)


def test_tables_are_found_by_namespace_and_name(lake: lakebed.Lake) -> None:
    session = lake.datafusion()

    joined = session.sql('SELECT who FROM sales.orders JOIN "sales.north"."Orders" USING (id)')

    assert joined.to_pydict() == {"who": ["bob"]}
    assert session.catalog().schema_names() >= {"sales", "sales.north"}
    with pytest.raises(ValueError, match=r"'datafusion\.sales\.nothing' not found"):
        session.sql("SELECT * FROM sales.nothing")


def test_all_tables_are_read_as_they_were_when_the_session_began(lake: lakebed.Lake) -> None:
    session = lake.datafusion()
    assert ids(session.sql("SELECT id FROM sales.orders").to_pydict()) == [1, 2]
    with lake.transaction() as tx:
        tx.table("sales.orders").append([{"id": 3, "who": None}])
        tx.table("sales.north.Orders").append([{"id": 3}])  # not planned yet
    lake.table("sales.orders").alter().drop_column("who").commit()

    assert ids(session.sql("SELECT id FROM sales.orders").to_pydict()) == [1, 2]
    assert ids(session.sql('SELECT id FROM "sales.north"."Orders"').to_pydict()) == [2]
    assert session.sql("SELECT who FROM sales.orders WHERE id = 1").to_pydict() == {"who": ["ann"]}
    later = lake.datafusion().sql("SELECT * FROM sales.orders").to_pydict()
    assert ids(later) == [1, 2, 3]


def test_the_tables_are_listed(lake: lakebed.Lake) -> None:
    listed = lake.datafusion().sql("SELECT table_schema, table_name FROM information_schema.tables")

    assert set(zip(*listed.to_pydict().values(), strict=True)) >= {
        ("sales", "orders"),
        ("sales.north", "Orders"),
    }


def test_a_file_that_cannot_match_is_not_opened(lake: lakebed.Lake) -> None:
    table = lake.table("sales.orders")
    table.append([{"id": 10, "who": "cy"}])
    session = lake.datafusion()
    first, _ = (Path(table.location, file.path) for file in table.files())
    first.unlink()

    assert session.sql("SELECT who FROM sales.orders WHERE id > 5").to_pydict() == {"who": ["cy"]}
    with pytest.raises(Exception, match="is missing"):
        session.sql("SELECT who FROM sales.orders").to_pydict()


def test_rows_are_counted_and_leases_are_given_back(lake: lakebed.Lake) -> None:
    table = lake.table("sales.orders")
    table.delete("id = 1")

    counted = lake.datafusion().sql("SELECT count(*) AS n FROM sales.orders").to_pydict()

    assert counted == {"n": [1]}
    assert table._parts.leases.active(table._id) == []


def test_a_process_may_end_while_the_engine_still_reads(lake: lakebed.Lake, tmp_path: Path) -> None:
    big = lake.create_table("sales.big", "id long")
    with lake.transaction() as tx:
        for first in range(0, 400_000, 50_000):
            tx.table("sales.big").append([{"id": i} for i in range(first, first + 50_000)])
    assert big.row_count == 400_000

    ended = subprocess.run(
        [sys.executable, "-c", ENDS_WHILE_READING, tmp_path / "lake"], check=False
    )

    assert ended.returncode == 0
