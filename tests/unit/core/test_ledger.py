"""What a ledger remembers from one look to the next is what the rows say."""

from pathlib import Path

import pyarrow as pa
import pytest

import lakebed
from lakebed.core.ledger import Ledger
from lakebed.meta import commits
from lakebed.model.history import Snapshot

_ROW = pa.table({"id": [1]})


@pytest.fixture
def table(tmp_path: Path) -> lakebed.Table:
    lake = lakebed.open(tmp_path / "lake", create=True)
    table = lake.create_table("a.t", _ROW.schema)
    for _ in range(3):
        table.append(_ROW)
    return table


def ledger(table: lakebed.Table) -> Ledger:
    return table._parts.outbox.ledger(table._id)


def published(table: lakebed.Table, limit: int) -> list[Snapshot]:
    return ledger(table).published_snapshots(limit)


def all_with_lists(table: lakebed.Table) -> list[Snapshot]:
    """Newest first, read each time."""
    found = ledger(table).snapshots()
    return [s for s in reversed(found) if s.manifest_list is not None]


def test_published_snapshots_are_the_newest_that_have_a_list(table: lakebed.Table) -> None:
    assert published(table, 10) == all_with_lists(table)
    for _ in range(7):
        table.append(_ROW)

    for limit in (1, 4, 100):
        assert published(table, limit) == all_with_lists(table)[:limit]


def test_a_snapshot_that_gets_another_list_is_read_anew(table: lakebed.Table) -> None:
    before = published(table, 10)
    newest = before[0].id

    with table._parts.outbox._store.write() as tx:
        commits.record_manifest_list(tx, table._id, newest, "metadata/other.avro")

    assert published(table, 10) == all_with_lists(table)
    assert published(table, 10)[0].manifest_list == "metadata/other.avro"
