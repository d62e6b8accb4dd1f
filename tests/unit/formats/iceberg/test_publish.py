"""Publishing: repeatable to the byte, forward only, and never over what others wrote."""

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import orjson
import pytest

from lakebed.formats.iceberg import avro
from lakebed.formats.iceberg import publish as publish_module
from lakebed.formats.iceberg.manifest_files import decode_manifest, decode_manifest_list
from lakebed.formats.iceberg.read import IcebergSnapshot, read_snapshot
from lakebed.model.errors import ForeignCommit, PublishError, UnsupportedFeature
from lakebed.model.files import ColumnStats, DataFile
from lakebed.model.ids import FieldId, SchemaId, SpecId, StateId, Version
from lakebed.model.schema import Schema, new_schema
from lakebed.model.schema_text import parse_schema
from lakebed.storage.memory import MemoryStorage
from tests.unit.formats.iceberg import fake_ledger
from tests.unit.formats.iceberg.fake_ledger import FIRST_MS, STEP_MS, FakeLedger, publish

HINT = "ns/t/metadata/version-hint.text"
POINTS = (
    "publish_iceberg_after_manifest",
    "publish_iceberg_after_list",
    "publish_iceberg_after_metadata",
)


def files(*numbers: int) -> list[DataFile]:
    stats = {FieldId(1): ColumnStats(10, 0, None, 80, 1, 9)}
    return [DataFile(f"data/{n}.parquet", 100 + n, 10, SpecId(0), (), stats) for n in numbers]


def new_ledger(**options: Any) -> FakeLedger:
    return FakeLedger(new_schema(parse_schema("id long, name string")), **options)


def history(storage: MemoryStorage, ledger: FakeLedger) -> None:
    """Versions 0 to 3: nothing, two files, two more, one removed."""
    ledger.commit()
    ledger.commit(files(1, 2))
    ledger.commit(files(3, 4))
    ledger.commit(remove=[2])
    for version in range(4):
        publish(storage, ledger, Version(version))


def metadata(storage: MemoryStorage, ledger: FakeLedger, at: int = -1) -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads(storage.get(f"ns/t/{ledger.published[at].path}"))
    return found


def contents(storage: MemoryStorage) -> dict[str, bytes]:
    return {s.path: storage.get(s.path) for s in storage.list("")}


def read(storage: MemoryStorage, **options: Any) -> IcebergSnapshot:
    return read_snapshot(storage, "ns/t", **options)


def test_each_version_shows_its_files() -> None:
    storage, ledger = MemoryStorage("x"), new_ledger()
    history(storage, ledger)

    for version, names in enumerate([[], [1, 2], [1, 2, 3, 4], [1, 3, 4]]):
        found = read(storage, metadata_path=ledger.published[version].path)
        assert sorted(found.files) == [f"data/{n}.parquet" for n in names]


def test_files_carry_the_time_of_their_commit() -> None:
    storage, ledger = MemoryStorage("x"), new_ledger()
    history(storage, ledger)

    times = {s.modified_ms for s in storage.list("") if not s.path.endswith(".text")}
    assert times == {FIRST_MS + n * STEP_MS for n in range(4)}


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("version", [2, 3])
def test_an_interrupted_publication_is_made_again_with_the_same_bytes(
    point: str, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    smooth, ledger = MemoryStorage("x"), new_ledger(version=version)
    history(smooth, ledger)
    broken, again = MemoryStorage("x"), new_ledger(version=version)
    history(broken, again)
    for each in (ledger, again):
        each.commit(files(5), remove=[1])

    with monkeypatch.context() as patch:
        patch.setattr(publish_module, "crash_point", _dies_at(point))
        with pytest.raises(InterruptedError):
            publish(broken, again, Version(4))
    again.commit(files(6))  # the head moves on before the repeat
    publish(broken, again, Version(4))
    publish(smooth, ledger, Version(4))

    assert contents(broken) == contents(smooth)


def _dies_at(point: str) -> Callable[[str], None]:
    def crash_point(name: str) -> None:
        if name == point:
            raise InterruptedError

    return crash_point


def test_publishing_what_is_recorded_writes_nothing() -> None:
    storage, ledger = MemoryStorage("x"), new_ledger()
    history(storage, ledger)
    before = contents(storage)

    done = publish(storage, ledger, Version(2))

    assert done.publications == ()
    assert contents(storage) == before


def test_the_hint_names_the_newest_publication_and_never_goes_back() -> None:
    storage, ledger = MemoryStorage("x"), new_ledger()
    ledger.commit()
    ledger.commit(files(1))
    publish(storage, ledger, Version(0))
    first = storage.get(HINT)
    behind = replace_ledger(ledger)
    publish(storage, ledger, Version(1))
    second = storage.get(HINT)

    publish(storage, behind, Version(0))  # a slow twin that had not seen version 1

    assert first.startswith(b"00000-")
    assert second.startswith(b"00001-")
    assert storage.get(HINT) == second
    assert ledger.published[-1].path == f"metadata/{second.decode()}.metadata.json"


def replace_ledger(ledger: FakeLedger) -> FakeLedger:
    """A twin that has seen the same commits and no publication."""
    twin = new_ledger()
    twin.commit()
    twin.commit(files(1))
    assert [s.id for s in twin.snapshots] == [s.id for s in ledger.snapshots]
    return twin


@pytest.mark.parametrize("hint", [b"", b"7", b"v3", b"\xff", b"99999-" + b"0" * 36])
def test_a_hint_that_is_not_ours_is_replaced(hint: bytes) -> None:
    storage, ledger = MemoryStorage("x"), new_ledger()
    storage.replace(HINT, hint)

    history(storage, ledger)

    assert storage.get(HINT).startswith(b"00003-")


@pytest.mark.parametrize("kind", ["metadata.json", "-m0.avro", "snap-"])
def test_what_others_wrote_is_never_overwritten(kind: str) -> None:
    storage, ledger = MemoryStorage("x"), new_ledger()
    history(storage, ledger)
    trial, twin = MemoryStorage("x"), new_ledger()
    history(trial, twin)
    for each in (ledger, twin):
        each.commit(files(5))
    publish(trial, twin, Version(4))
    path = next(p for p in contents(trial) if p not in contents(storage) and kind in p)
    storage.put_if_absent(path, b"something else")

    with pytest.raises(ForeignCommit) as caught:
        publish(storage, ledger, Version(4))

    assert storage.get(path) == b"something else"
    assert storage.get(HINT).startswith(b"00003-")
    assert "lakebed publish" in caught.value.hint


def test_a_manifest_compressed_by_another_library_is_taken_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    storage, ledger = MemoryStorage("x"), new_ledger()
    ledger.commit(files(*range(1, 2000)))
    with monkeypatch.context() as patch:
        patch.setattr(avro, "DEFLATE_LEVEL", 9)
        patch.setattr(publish_module, "crash_point", _dies_at("publish_iceberg_after_manifest"))
        with pytest.raises(InterruptedError):
            publish(storage, ledger, Version(0))

    publish(storage, ledger, Version(0))

    (manifest,) = ledger.live_manifests()
    assert len(storage.get(f"ns/t/{manifest.path}")) == manifest.size_bytes
    assert len(read(storage).files) == 1999


def test_a_setting_changed_before_the_repeat_does_not_stop_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The record of a publication may be lost in a power cut, its files are not."""
    storage, ledger = MemoryStorage("x"), new_ledger()
    history(storage, ledger)
    ledger.commit(files(5))
    lost = replace_records(ledger)
    publish(storage, ledger, Version(4))
    monkeypatch.setattr(fake_ledger, "default_settings", lambda name, properties: 2)

    publish(storage, lost, Version(4))

    assert lost.published[-1] == ledger.published[-1]
    assert len(metadata(storage, lost)["snapshots"]) == 4


def replace_records(ledger: FakeLedger) -> FakeLedger:
    twin = copy.copy(ledger)
    twin.published, twin.manifests = list(ledger.published), dict(ledger.manifests)
    twin.retired, twin.snapshots = set(ledger.retired), list(ledger.snapshots)
    return twin


def test_a_change_of_properties_writes_metadata_alone() -> None:
    storage, ledger = MemoryStorage("x"), new_ledger()
    history(storage, ledger)
    before = set(contents(storage))
    state = replace(ledger.states[-1], id=StateId(1), properties={"owner": "me"}, comment="mine")
    ledger.commit(state=state)

    done = publish(storage, ledger, Version(4))

    assert set(contents(storage)) - before == {f"ns/t/{done.publications[0].path}"}
    found = metadata(storage, ledger)
    assert found["properties"]["owner"] == "me"
    assert found["properties"]["comment"] == "mine"
    assert found["properties"]["gc.enabled"] == "false"
    assert found["current-snapshot-id"] == metadata(storage, ledger, -2)["current-snapshot-id"]
    assert found["last-updated-ms"] == FIRST_MS + 4 * STEP_MS


def test_later_schemas_do_not_show_in_earlier_metadata() -> None:
    storage, ledger = MemoryStorage("x"), new_ledger()
    ledger.commit()
    ledger.commit(files(1))
    wider = new_schema(parse_schema("id long, name string, age int"))
    state = replace(
        ledger.states[-1], id=StateId(1), schema=Schema(SchemaId(1), wider.fields), last_column_id=3
    )
    ledger.commit(state=state)
    for version in range(3):
        publish(storage, ledger, Version(version))

    before, after = metadata(storage, ledger, 1), metadata(storage, ledger, 2)

    assert [s["schema-id"] for s in before["schemas"]] == [0]
    assert [s["schema-id"] for s in after["schemas"]] == [0, 1]
    assert (after["current-schema-id"], after["last-column-id"]) == (1, 3)
    assert after["snapshots"][0]["schema-id"] == 0


def test_only_the_newest_snapshots_are_listed_and_name_their_parents() -> None:
    storage, ledger = MemoryStorage("x"), new_ledger(properties={"publish.iceberg.keep": "3"})
    for number in range(6):
        ledger.commit(files(number + 1))
        publish(storage, ledger, Version(number))

    found = metadata(storage, ledger)

    ids = [s.id for s in ledger.snapshots]
    assert [s["snapshot-id"] for s in found["snapshots"]] == ids[3:]
    assert [s.get("parent-snapshot-id") for s in found["snapshots"]] == ids[2:5]
    assert [s["snapshot-id"] for s in found["snapshot-log"]] == ids[3:]
    assert found["refs"] == {"main": {"snapshot-id": ids[5], "type": "branch"}}
    assert found["last-sequence-number"] == 6


def test_the_metadata_log_names_the_ten_publications_before() -> None:
    storage, ledger = MemoryStorage("x"), new_ledger()
    for number in range(14):
        ledger.commit(files(number + 1) if number % 2 else [])
        publish(storage, ledger, Version(number))

    log = metadata(storage, ledger)["metadata-log"]

    assert [e["timestamp-ms"] for e in log] == [FIRST_MS + n * STEP_MS for n in range(3, 13)]
    assert [e["metadata-file"] for e in log] == [
        f"memory://x/ns/t/{p.path}" for p in ledger.published[3:13]
    ]


def test_turning_iceberg_on_shows_all_files_in_one_snapshot_without_a_parent() -> None:
    storage, ledger = MemoryStorage("x"), new_ledger()
    for number in range(3):  # while Iceberg was off
        ledger.commit(files(number + 1))
    ledger.commit(remove=[2])
    ledger.commit(snapshot=True)

    publish(storage, ledger, Version(4), "start")

    found = read(storage)
    assert sorted(found.files) == ["data/1.parquet", "data/3.parquet"]
    assert [e.entry.status for e in found.files.values()] == [0, 0]
    assert [e.entry.sequence_number for e in found.files.values()] == [1, 3]
    assert found.snapshot is not None
    assert "parent-snapshot-id" not in found.snapshot
    assert len(found.metadata["snapshots"]) == 1
    header, _ = decode_manifest_list(storage.get(_key(found.snapshot["manifest-list"])))
    assert header["parent-snapshot-id"] == b"null"


def _key(location: str) -> str:
    return location.removeprefix("memory://x/")


def test_turning_iceberg_off_and_on_keeps_the_old_snapshots_readable() -> None:
    storage, ledger = MemoryStorage("x"), new_ledger()
    history(storage, ledger)
    ledger.commit(files(5))  # not published
    ledger.commit(snapshot=True)

    publish(storage, ledger, Version(5), "start")
    ledger.commit(remove=[4])
    publish(storage, ledger, Version(6))

    ids = [s.id for s in ledger.snapshots]
    assert sorted(read(storage).files) == [f"data/{n}.parquet" for n in (1, 3, 5)]
    assert sorted(read(storage, snapshot_id=ids[1]).files) == [
        f"data/{n}.parquet" for n in (1, 2, 3, 4)
    ]
    listed = {s["snapshot-id"]: s for s in read(storage).metadata["snapshots"]}
    assert ids[3] not in listed
    assert "parent-snapshot-id" not in listed[ids[4]]
    assert listed[ids[5]]["parent-snapshot-id"] == ids[4]


def test_an_empty_table_can_start_without_a_snapshot() -> None:
    storage, ledger = MemoryStorage("x"), new_ledger()
    ledger.commit()

    publish(storage, ledger, Version(0), "start")

    found = read(storage)
    assert (found.snapshot, found.files) == (None, {})
    assert "current-snapshot-id" not in found.metadata


def test_files_without_a_snapshot_are_never_published_as_nothing() -> None:
    storage, ledger = MemoryStorage("x"), new_ledger()
    ledger.commit(files(1))
    ledger.commit()

    with pytest.raises(PublishError, match="no snapshot"):
        publish(storage, ledger, Version(1), "start")
    assert contents(storage) == {}


def test_a_manifest_of_removed_files_alone_is_listed_once() -> None:
    storage, ledger = MemoryStorage("x"), new_ledger()
    ledger.commit(files(1))
    ledger.commit(files(2))
    ledger.commit(remove=[1])
    ledger.commit(files(3))
    counts = []
    for version in range(4):
        publish(storage, ledger, Version(version))
        snapshot = read(storage).snapshot
        assert snapshot is not None
        _, manifests = decode_manifest_list(storage.get(_key(snapshot["manifest-list"])))
        counts.append([m.deleted_files_count for m in manifests])

    assert counts == [[0], [0, 0], [1, 0], [0, 0]]


def test_rows_and_manifests_that_disagree_stop_the_publication() -> None:
    storage, ledger = MemoryStorage("x"), new_ledger()
    history(storage, ledger)
    ledger.live_rows = [f for f in ledger.live_rows if f.id != 3]  # a row is lost
    ledger.commit(remove=[4])

    with pytest.raises(PublishError, match="the rows have 0"):
        publish(storage, ledger, Version(4))


def test_v3_has_row_lineage_throughout() -> None:
    storage, ledger = MemoryStorage("x"), new_ledger(version=3)
    history(storage, ledger)

    found = read(storage)

    assert found.metadata["format-version"] == 3
    assert found.metadata["next-row-id"] == 40
    assert [(s["first-row-id"], s["added-rows"]) for s in found.metadata["snapshots"]] == [
        (0, 20),
        (20, 20),
        (40, 0),
    ]
    assert {p: f.entry.file.first_row_id for p, f in found.files.items()} == {
        "data/1.parquet": 0,
        "data/3.parquet": 20,
        "data/4.parquet": 30,
    }


def test_an_upgrade_to_v3_rewrites_manifests_whose_files_cannot_inherit_their_row_ids() -> None:
    storage, ledger = MemoryStorage("x"), new_ledger()
    history(storage, ledger)
    ledger.live_rows = [replace(f, first_row_id=int(f.id) * 10) for f in ledger.live_rows]
    ledger.next_row_id = 100
    ledger.commit(files(5), state=replace(ledger.states[-1], id=StateId(1), iceberg_version=3))

    publish(storage, ledger, Version(4))

    found = read(storage)
    assert [f.entry.file.first_row_id for f in found.files.values()] == [10, 30, 40, 100]
    assert all(m.first_row_id is not None for m in ledger.live_manifests())
    assert len(read(storage, snapshot_id=ledger.snapshots[1].id).files) == 4


def test_a_v3_schema_in_a_v2_table_is_refused() -> None:
    storage = MemoryStorage("x")
    ledger = FakeLedger(new_schema(parse_schema("t timestamp_ns")), version=2)
    ledger.commit()

    with pytest.raises(UnsupportedFeature):
        publish(storage, ledger, Version(0))


def test_small_manifests_are_merged_and_read_from_the_rows() -> None:
    storage, ledger = MemoryStorage("x"), new_ledger()
    for number in range(120):
        ledger.commit(files(number + 1))
        publish(storage, ledger, Version(number))

    assert len(ledger.live_manifests()) <= 20
    assert ledger.runs_read <= 120 * 2
    assert len(read(storage).files) == 120
    merged = max(ledger.live_manifests(), key=lambda m: m.counts[1])
    _, entries = decode_manifest(storage.get(f"ns/t/{merged.path}"))
    assert {e.status for e in entries} == {0}
    assert [e.sequence_number for e in entries] == list(range(1, merged.counts[1] + 1))
