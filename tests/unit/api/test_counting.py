"""count(*), min and max of whole tables are right whatever the table is, and open no file."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import lakebed
from lakebed.storage.local import LocalStorage

COUNT = "SELECT count(*) AS n FROM s.t"


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[lakebed.Lake]:
    with lakebed.open(tmp_path / "lake", create=True) as lake:
        table = lake.create_table("s.t", "id long, name string")
        table.append([{"id": n, "name": f"name {n}"} for n in range(10)])
        table.append([{"id": n, "name": None} for n in range(10, 15)])
        yield lake


def rows(lake: lakebed.Lake, sql: str) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in lake.sql(sql).to_pylist()]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (COUNT, (15,)),
        ("SELECT count(*), count(*) AS again FROM s.t AS x", (15, 15)),
        ("SELECT count(*), min(id), max(id) FROM s.t", (15, 0, 14)),
        ('SELECT min("id"), MAX("ID") FROM s.t', (0, 14)),
    ],
)
def test_no_file_is_opened(
    lake: lakebed.Lake, monkeypatch: pytest.MonkeyPatch, sql: str, expected: tuple[int, ...]
) -> None:
    monkeypatch.setattr(LocalStorage, "open_input", None)
    monkeypatch.setattr("lakebed.api.sql.select.engine_for", None)

    assert rows(lake, sql) == [expected]


def test_rows_that_are_gone_are_not_counted(lake: lakebed.Lake) -> None:
    lake.table("s.t").delete("id % 5 = 0")

    assert rows(lake, COUNT) == [(12,)]
    assert rows(lake, "SELECT min(id), max(id) FROM s.t") == [(1, 14)]


def test_other_versions_and_branches_have_their_own_counts(lake: lakebed.Lake) -> None:
    table = lake.table("s.t")
    table.create_branch("b")
    table.append([{"id": 99, "name": "b"}], branch="b")

    assert rows(lake, COUNT) == [(15,)]
    assert rows(lake, f"{COUNT} VERSION AS OF 1") == [(10,)]
    assert rows(lake, "SELECT count(*) FROM s.t@b") == [(16,)]


def test_a_transaction_counts_what_it_sees(lake: lakebed.Lake) -> None:
    with lake.sql_session() as session:
        session.sql("BEGIN; INSERT INTO s.t VALUES (100, 'x')")

        assert session.sql(COUNT).to_pylist() == [{"n": 16}]
        assert rows(lake, COUNT) == [(15,)]


def test_views_and_metadata_tables_are_counted_by_their_rows(lake: lakebed.Lake) -> None:
    lake.sql("CREATE VIEW s.v AS SELECT * FROM s.t WHERE id < 3")

    assert rows(lake, "SELECT count(*) FROM s.v") == [(3,)]
    assert rows(lake, "SELECT count(*) FROM s.t$files") == [(2,)]


def test_counting_an_unknown_table_is_refused(lake: lakebed.Lake) -> None:
    with pytest.raises(lakebed.TableNotFound):
        lake.sql("SELECT count(*) FROM s.missing")
