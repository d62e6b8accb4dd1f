"""deltalakedb's points about reading: the database alone says what a table is."""

import shutil
from pathlib import Path

import deltalake
import orjson
import pytest

import lakebed
from lakebed.model.errors import VersionNotFound


def test_dl_01_a_snapshot_is_rebuilt_from_the_database_alone(tmp_path: Path) -> None:
    with lakebed.open(tmp_path / "lake", create=True) as lake:
        table = lake.create_table(
            "s.t", "id long not null, p string", partition_by=["p"], properties={"team": "blue"}
        )
        table.append([{"id": 1, "p": "a"}, {"id": 2, "p": "b"}])
        table.delete("p = 'a'")
        table.restore(version=1)  # a path that was removed is there again
        table.delete("id = 2")
        location = Path(table.location)
    for folder in ("_delta_log", "metadata"):
        shutil.rmtree(location / folder)

    with lakebed.open(tmp_path / "lake") as lake:
        table = lake.table("s.t")
        assert (table.version, table.to_arrow().to_pylist()) == (4, [{"id": 1, "p": "a"}])
        assert [f.name for f in table.partitioning.fields] == ["p"]
        assert table.properties["team"] == "blue"
        rows = [len(table.scan(version=v).to_arrow()) for v in range(5)]
        assert rows == [0, 2, 1, 2, 1]


def test_dl_02_time_travel_names_the_valid_range(orders: lakebed.Table) -> None:
    for number in range(3):
        orders.append([{"id": number}])
    times = [c.time_ms for c in reversed(orders.history())]

    for version, time_ms in enumerate(times):
        assert orders.scan(timestamp=time_ms).plan().version == version
        if version:
            assert orders.scan(timestamp=time_ms - 1).plan().version == version - 1
    with pytest.raises(VersionNotFound) as before:
        orders.scan(timestamp=times[0] - 1).plan()
    with pytest.raises(VersionNotFound) as unknown:
        orders.scan(version=4).plan()
    assert "first commit" in str(before.value.hint)
    assert unknown.value.hint == "its versions are 0 to 3"


def test_dl_03_a_reader_without_a_feature_is_told_by_the_protocol(orders: lakebed.Table) -> None:
    orders.append([{"id": i} for i in range(10)])
    plain = deltalake.DeltaTable(orders.location).protocol()

    orders.delete("id = 3")

    needed = deltalake.DeltaTable(orders.location).protocol()
    assert plain.reader_features is None
    assert needed.reader_features == ["deletionVectors"]
    with pytest.raises(Exception, match=r"(?i)deletion ?vector"):
        deltalake.DeltaTable(orders.location).to_pyarrow_table()
    log = Path(orders.location, "_delta_log", f"{orders.version:020}.json").read_bytes()
    assert [a for a in map(orjson.loads, log.splitlines()) if "protocol" in a]
