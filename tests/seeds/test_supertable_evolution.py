"""Supertable's points about schemas and partitions, with the holes it had."""

from datetime import UTC, datetime

import pytest

import lakebed


def test_st_42_schemas_evolve_and_old_files_are_read_by_field_id(lake: lakebed.Lake) -> None:
    table = lake.create_table(
        "s.t", "id int, f float, s struct<x: int>, gone string, n int not null"
    )
    table.append([{"id": 1, "f": 1.5, "s": {"x": 1}, "gone": "old", "n": 1}])

    alter = table.alter().add_column("s.y", "long").drop_column("gone").rename_column("s.x", "z")
    alter = alter.widen_column("id", "long").widen_column("f", "double").make_optional("n")
    alter.add_column("gone", "int").commit()
    table.append([{"id": 2**40, "f": 1e300, "s": {"z": 2, "y": 3}, "gone": 4}])

    assert table.to_arrow().to_pylist() == [
        {"id": 1, "f": 1.5, "s": {"z": 1, "y": None}, "n": 1, "gone": None},
        {"id": 2**40, "f": 1e300, "s": {"z": 2, "y": 3}, "n": None, "gone": 4},
    ]
    for kind in ("int", "string"):
        with pytest.raises(lakebed.InvalidInput):
            table.alter().widen_column("id", kind)
    with pytest.raises(lakebed.SchemaMismatch):
        table.append([{"id": "text"}])


@pytest.mark.parametrize(
    "term",
    ["id", "bucket(4, id)", "truncate(10, id)", "year(ts)", "month(ts)", "day(ts)", "hour(ts)"],
)
def test_st_43_writers_apply_transforms_and_readers_prune(lake: lakebed.Lake, term: str) -> None:
    table = lake.create_table("s.t", "id long, ts timestamp")
    days = [datetime(2020 + n, 1 + n, 1 + n, n, tzinfo=UTC) for n in range(4)]
    rows = [{"id": 10 * n, "ts": day} for n, day in enumerate(days)]
    table.append(rows[:1])

    table.alter().set_partitioning([term]).commit()
    table.append(rows[1:])

    assert table.partitioning.fields[0].id == 1000
    assert [len(f.partition) for f in table.files()][:2] == [0, 1]
    for number, row in enumerate(rows):
        moment = days[number].isoformat()
        scan = table.scan(where=f"id = {row['id']} AND ts = TIMESTAMP '{moment}'")
        assert scan.to_arrow().to_pylist() == [row]
        assert scan.plan().pruned >= 2
