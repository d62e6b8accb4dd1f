"""Changes of rows that find their files by the index: what a transaction did before, branches."""

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

import lakebed
from lakebed.api.txtable import TransactionTable
from lakebed.model.errors import CommitConflict


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[lakebed.Lake]:
    """Six files of ten rows, of which one is gone; the first four files are indexed by twos."""
    with lakebed.open(tmp_path / "lake", create=True) as lake:
        table = lake.create_table("s.t", "id long, n long", formats="delta")
        for first in range(0, 60, 10):
            table.append([{"id": first + n, "n": 0} for n in range(10)])
            if first == 30:
                lake._parts.planner._index._width = 2
                assert lake._parts.planner.build_index(table.id) == 4
        table.delete("id = 13")
        table.create_branch("b")
        yield lake


def ids(table: TransactionTable, where: str) -> list[int]:
    return sorted(row["id"] for row in table.scan(where=where).to_arrow().to_pylist())


@pytest.mark.parametrize("name", ["s.t", "s.t@b"])
def test_a_transaction_sees_what_is_gone_and_what_is_its_own(lake: lakebed.Lake, name: str) -> None:
    near = "id >= 12 AND id < 15"
    with lake.transaction() as transaction:
        table = transaction.table(name)
        assert ids(table, near) == [12, 14]
        assert table.delete("id = 12").deleted_rows == 1
        assert table.update({"n": "5"}, near).updated_rows == 1
        table.append([{"id": 13, "n": 7}])
        assert ids(table, near) == [13, 14]
        assert table.upsert([{"id": 13, "n": 8}, {"id": 12, "n": 8}], key="id").updated_rows == 1
        assert table.delete("id = 13 AND n = 8").deleted_rows == 1
        plan = table.scan(where="id = 55").plan()
        assert table._staged.live is None  # all of it without a look at every file
        assert (len(plan.files), plan.pruned) == (1, len(table.scan().plan().files) - 1)

    found = lake.table("s.t").scan(where=near, ref=name.partition("@")[2] or None).to_arrow()
    assert sorted(found.to_pylist(), key=lambda row: row["id"]) == [
        {"id": 12, "n": 8},
        {"id": 14, "n": 5},
    ]
    assert lake.table("s.t").scan(ref="main" if "@" in name else "b").to_arrow().num_rows == 59


@pytest.mark.parametrize(
    ("isolation", "came", "clashes"),
    [("serializable", 14, True), ("serializable", 99, False), ("write_serializable", 14, False)],
)
def test_what_a_delete_rests_on_is_its_condition_not_the_files_it_was_shown(
    lake: lakebed.Lake, isolation: str, came: int, clashes: bool
) -> None:
    transaction = lake.transaction(isolation=isolation)
    assert transaction.table("s.t").delete("id = 14 OR id = 45").deleted_rows == 2
    lake.table("s.t").append([{"id": came, "n": 1}])

    with pytest.raises(CommitConflict) if clashes else nullcontext():
        transaction.commit()

    assert lake.table("s.t").row_count == (60 if clashes else 58)
