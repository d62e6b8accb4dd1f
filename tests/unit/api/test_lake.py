"""Tables and namespaces: made, renamed, dropped, purged, made again; nothing is shared."""

from pathlib import Path

import deltalake
import pytest
from pyiceberg.table import StaticTable

import lakebed
from lakebed.model.errors import (
    NamespaceExists,
    NamespaceNotEmpty,
    NamespaceNotFound,
    VersionNotFound,
)


def ids(table: lakebed.Table) -> list[int]:
    return sorted(table.to_arrow()["id"].to_pylist())


def delta_ids(location: str) -> list[int]:
    return sorted(deltalake.DeltaTable(location).to_pyarrow_table()["id"].to_pylist())


def iceberg_ids(location: str) -> list[int]:
    return sorted(StaticTable.from_metadata(location).scan().to_arrow()["id"].to_pylist())


def test_a_table_made_again_shares_nothing_with_the_dropped_one(disk: lakebed.Lake) -> None:
    old = disk.create_table("a.t", [{"id": 1}])
    old_place, old_uuid = Path(old.location), old.uuid
    before = sorted(old_place.rglob("*"))

    disk.drop_table("a.t")
    new = disk.create_table("a.t", [{"id": 2}])

    assert (new.version, new.uuid != old_uuid, ids(new)) == (0, True, [2])
    assert new.location == f"{old_place}-{new.uuid[:8]}"
    assert sorted(old_place.rglob("*")) == before
    assert disk.dropped_tables() == [("a.t", str(old_place))]
    with pytest.raises(lakebed.TableNotFound, match="was dropped"):
        old.to_arrow()
    with pytest.raises(lakebed.TableNotFound):
        old.append([{"id": 3}])


def test_purging_removes_the_dropped_tables_files_only(disk: lakebed.Lake) -> None:
    first = Path(disk.create_table("a.t", [{"id": 1}]).location)
    disk.drop_table("a.t")
    second = disk.create_table("a.t", [{"id": 2}])

    assert disk.purge_table("a.t") == 1

    assert not first.exists()
    assert ids(second) == [2]
    assert disk.dropped_tables() == []
    assert disk.check().clean
    with pytest.raises(lakebed.TableNotFound, match="no dropped table"):
        disk.purge_table("a.t")


def test_dropped_and_purged_at_once_the_name_and_folder_are_free(disk: lakebed.Lake) -> None:
    place = disk.create_table("a.t", [{"id": 1}]).location

    disk.drop_table("a.t", purge=True)

    assert not Path(place).exists()
    assert (disk.tables(), disk.dropped_tables()) == ([], [])
    assert disk.create_table("a.t", "id long").location == place


def test_a_renamed_table_stays_where_it_is_and_its_handle_follows(disk: lakebed.Lake) -> None:
    table = disk.create_table("a.t", [{"id": 1}])
    place = table.location

    disk.rename_table("a.t", "b.c.u")
    table.append([{"id": 2}])
    other = disk.create_table("a.t", [{"id": 9}])

    assert (table.name, table.location) == ("b.c.u", place)
    assert disk.tables() == ["a.t", "b.c.u"]
    assert ids(disk.table("b.c.u")) == [1, 2]
    assert (other.location != place, ids(other)) == (True, [9])
    assert delta_ids(place) == iceberg_ids(place) == [1, 2]


def test_a_rename_onto_a_table_is_refused(lake: lakebed.Lake) -> None:
    lake.create_table("a.t", "id long")
    lake.create_table("a.u", "id long")

    with pytest.raises(lakebed.TableExists):
        lake.rename_table("a.t", "a.u")
    with pytest.raises(lakebed.TableNotFound):
        lake.rename_table("a.nope", "a.v")
    lake.rename_table("a.t", "a.t")
    assert lake.tables() == ["a.t", "a.u"]


def test_no_table_lies_inside_another(disk: lakebed.Lake) -> None:
    """A table `a.t` and a namespace `a.t` may both be there."""
    outer = disk.create_table("a.t", [{"id": 1}])
    inner = disk.create_table("a.t.u", [{"id": 2}])
    below = disk.create_table("x.y.z", [{"id": 3}])
    around = disk.create_table("x.y", [{"id": 4}])

    places = [Path(t.location) for t in (outer, inner, below, around)]
    assert all(a == b or a not in b.parents for a in places for b in places)
    disk.drop_table("a.t", purge=True)
    disk.drop_table("x.y", purge=True)
    assert (ids(inner), ids(below)) == ([2], [3])
    assert disk.check().clean


def test_namespaces_are_nested_and_have_properties(lake: lakebed.Lake) -> None:
    lake.create_namespace("a.b.c", {"owner": "ada", "level": 3})  # type: ignore[dict-item]

    assert lake.namespaces() == ["a", "a.b", "a.b.c"]
    assert (lake.namespaces("a"), lake.namespaces("a.b.c")) == (["a.b"], [])
    assert lake.namespace_properties("a") == {}
    assert lake.namespace_properties("a.b.c") == {"owner": "ada", "level": "3"}
    after = lake.set_namespace_properties("a.b.c", {"level": "4"}, removed=["owner", "nope"])
    assert after == lake.namespace_properties("a.b.c") == {"level": "4"}


def test_a_namespace_is_made_once_and_dropped_when_empty(lake: lakebed.Lake) -> None:
    lake.create_table("a.b.t", "id long")

    with pytest.raises(NamespaceExists):
        lake.create_namespace("a.b")
    lake.create_namespace("a.b", exist_ok=True)
    for name in ("a", "a.b"):
        with pytest.raises(NamespaceNotEmpty):
            lake.drop_namespace(name)
    lake.drop_table("a.b.t")
    with pytest.raises(NamespaceNotEmpty, match="files are kept"):
        lake.drop_namespace("a.b")
    lake.purge_table("a.b.t")
    lake.drop_namespace("a.b")
    lake.drop_namespace("a")
    assert lake.namespaces() == []


@pytest.mark.parametrize("name", ["nope", "a.nope", "nope.nope"])
def test_a_missing_namespace_is_not_found(lake: lakebed.Lake, name: str) -> None:
    lake.create_namespace("a")

    for call in (
        lake.tables,
        lake.namespaces,
        lake.namespace_properties,
        lake.set_namespace_properties,
        lake.drop_namespace,
    ):
        with pytest.raises(NamespaceNotFound):
            call(name)


def test_an_empty_table_is_a_table_everywhere(disk: lakebed.Lake) -> None:
    table = disk.create_table("a.t", "id long not null, p string", partition_by=["p"])

    assert (table.version, table.row_count, table.files()) == (0, 0, [])
    assert table.to_arrow().schema.names == ["id", "p"]
    assert table.scan(where="id = 1", columns=["p"]).to_arrow().shape == (0, 1)
    assert list(table.scan().to_batches()) == []
    assert table.scan().to_pandas().shape == (0, 2)
    assert [c.operation for c in table.history()] == ["create"]
    assert table.overwrite([], where="p = 'x'").version == 1
    assert table.overwrite([], partitions=True).version == 2
    assert table.overwrite([]).version == 3
    assert table.append([]).version == 4
    assert disk.publish("a.t").lags == ()
    assert disk.check("a.t").clean
    assert delta_ids(table.location) == []
    assert StaticTable.from_metadata(table.location).scan().to_arrow().num_rows == 0
    with pytest.raises(VersionNotFound, match="no version 5"):
        table.scan(version=5).to_arrow()


def test_an_emptied_table_is_empty_and_its_past_is_not(disk: lakebed.Lake) -> None:
    table = disk.create_table("a.t", [{"id": 1}])

    table.overwrite([])

    assert (ids(table), table.files()) == ([], [])
    assert table.scan(version=0).to_arrow().num_rows == 1
    assert delta_ids(table.location) == iceberg_ids(table.location) == []
    assert disk.check().clean


def test_formats_are_turned_off_and_on_for_real_readers(disk: lakebed.Lake) -> None:
    table = disk.create_table("a.t", [{"id": 1}], formats="delta")
    place = Path(table.location)
    assert not (place / "metadata").exists()

    table.set_formats("iceberg")
    table.append([{"id": 2}])
    assert iceberg_ids(str(place)) == [1, 2]
    assert delta_ids(str(place)) == [1]

    table.set_formats(["delta", "iceberg"])
    table.append([{"id": 3}])
    assert delta_ids(str(place)) == iceberg_ids(str(place)) == ids(table) == [1, 2, 3]
    assert disk.check().clean


def test_a_type_without_a_twin_turns_delta_away(lake: lakebed.Lake) -> None:
    table = lake.create_table("a.t", "id long, u uuid", formats="iceberg")

    with pytest.raises(lakebed.InvalidInput) as refused:
        table.set_formats("delta,iceberg")
    with pytest.raises(lakebed.InvalidInput):
        lake.create_table("a.u", "u uuid")

    assert refused.value.hint
    assert (table.version, table.formats, lake.tables()) == (0, ("iceberg",), ["a.t"])


def test_a_closed_lake_says_so(lake: lakebed.Lake) -> None:
    table = lake.create_table("a.t", "id long")

    lake.close()

    with pytest.raises(lakebed.DatabaseError, match="closed"):
        table.to_arrow()
    lake.close()
