"""SuperTable's points (ST-…), for the part that is built; docs/seeds.md lists them all."""

import random
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import deltalake
import fastavro
import orjson
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.table import StaticTable
from pyiceberg.table.metadata import TableMetadataV2

import lakebed
from lakebed.core.commit import Committer
from lakebed.model.types import PRIMITIVES

pytestmark = pytest.mark.filterwarnings("ignore:Iceberg scan planning")
ROWS: list[dict[str, Any]] = [
    {"id": 1, "name": "one", "amount": 1.5},
    {"id": 2, "name": None, "amount": -1.0},
]


def metadata_of(table: lakebed.Table) -> dict[str, Any]:
    folder = Path(table.location) / "metadata"
    hint = (folder / "version-hint.text").read_text()
    found: dict[str, Any] = orjson.loads((folder / f"{hint}.metadata.json").read_bytes())
    return found


def avro(path: str) -> list[dict[str, Any]]:
    with Path(path).open("rb") as file:
        return list(fastavro.reader(file))  # type: ignore[arg-type]  # records, for us


def test_st_01_snapshot_manifest_list_manifests_and_data_files_are_real(
    orders: lakebed.Table,
) -> None:
    orders.append(ROWS)

    snapshot = metadata_of(orders)["snapshots"][-1]
    manifests = avro(snapshot["manifest-list"])
    entries = [e for m in manifests for e in avro(m["manifest_path"])]

    assert snapshot["manifest-list"].endswith(".avro")
    assert [m["manifest_length"] for m in manifests] == [
        Path(m["manifest_path"]).stat().st_size for m in manifests
    ]
    paths = [Path(e["data_file"]["file_path"]) for e in entries]
    assert [p.parent for p in paths] == [Path(orders.location) / "data"]
    assert pq.read_table(paths[0]).num_rows == 2


def test_st_02_a_committed_append_is_readable_by_everybody(orders: lakebed.Table) -> None:
    orders.append(ROWS)

    place = orders.location
    assert orders.to_arrow().to_pylist() == ROWS
    assert deltalake.DeltaTable(place).to_pyarrow_table().to_pylist() == ROWS
    assert StaticTable.from_metadata(place).scan().to_arrow().to_pylist() == ROWS
    assert pl.scan_delta(place).collect().to_dicts() == ROWS
    assert pl.scan_iceberg(place).collect().to_dicts() == ROWS


def test_st_03_metadata_has_every_part_of_version_2(lake: lakebed.Lake) -> None:
    table = lake.create_table(
        "sales.t", "id long, day date", partition_by=["month(day)"], sort_by=["id desc"]
    )
    table.append([{"id": 1, "day": None}])
    table.set_properties({"team": "blue"})

    found = metadata_of(table)
    parsed = TableMetadataV2.model_validate(found)

    assert parsed.format_version == 2
    assert str(parsed.table_uuid) == table.uuid
    assert [f.name for f in parsed.spec().fields] == ["day_month"]
    assert [f.direction.name for f in parsed.sort_order().fields] == ["DESC"]
    assert parsed.refs["main"].snapshot_id == parsed.current_snapshot_id
    assert len(parsed.metadata_log) == 2
    assert parsed.properties["team"] == "blue"
    assert {"statistics", "snapshot-log", "last-sequence-number", "last-column-id"} <= set(found)


@pytest.mark.parametrize("place", ["{}/bare path", "file://{}/by%20uri", "{}/ümlaut"])
def test_st_04_a_local_place_works_bare_and_as_a_uri(place: str, tmp_path: Path) -> None:
    uri = place.format(tmp_path)

    with lakebed.open(uri, create=True) as lake:
        table = lake.create_table("a.t", pa.table({"id": [1]}))
        location = Path(table.location)

    assert location.is_dir()
    assert location.is_relative_to(tmp_path)
    assert not Path("file:").exists()
    with lakebed.open(uri) as again:
        assert again.table("a.t").row_count == 1


@pytest.mark.parametrize(
    ("codec", "shown"), [(None, "ZSTD"), ("snappy", "SNAPPY"), ("gzip", "GZIP"), ("lz4", "LZ4")]
)
def test_st_05_the_codec_is_a_choice(lake: lakebed.Lake, codec: str | None, shown: str) -> None:
    properties = {"write.parquet.compression-codec": codec} if codec else {}
    table = lake.create_table("a.t", "id long", properties=properties)
    table.append([{"id": n} for n in range(1000)])

    footer = pq.ParquetFile(Path(table.location) / table.files()[0].path).metadata

    assert footer.row_group(0).column(0).compression.startswith(shown)


def test_st_05_a_file_is_rolled_not_held_in_memory(lake: lakebed.Lake) -> None:
    table = lake.create_table(
        "a.t", "id long, noise binary", properties={"write.target-file-size-bytes": "256 KiB"}
    )
    dice = random.Random(5)
    noise = [dice.randbytes(64) for _ in range(8000)]
    batch = pa.record_batch({"id": range(8000), "noise": noise})

    table.append(iter([batch] * 4))

    assert len(table.files()) > 1
    assert table.row_count == 32_000


def test_st_06_every_type_has_its_field_id_in_file_and_metadata(lake: lakebed.Lake) -> None:
    kinds = [k for k in PRIMITIVES if not k.endswith("_ns")]
    listed = [f"c{n} {kind}" for n, kind in enumerate(kinds)]
    nested = [
        "f fixed(4)",
        "d decimal(9,2)",
        "s struct<a: int>",
        "l list<int>",
        "m map<string,int>",
    ]
    table = lake.create_table("a.t", ", ".join([*listed, *nested]), formats=["iceberg"])
    table.append([{"c1": 5, "s": {"a": 1}, "l": [1], "m": [("k", 1)]}])

    schema = StaticTable.from_metadata(table.location).schema()
    stored = pq.ParquetFile(Path(table.location) / table.files()[0].path).schema_arrow

    for field in stored:
        assert (
            field.metadata[b"PARQUET:field_id"]
            == str(schema.find_field(field.name).field_id).encode()
        )
    ids = [f.id for f in table.schema.walk()]
    assert sorted(ids) == list(range(1, len(ids) + 1))


def test_st_10_the_loser_of_a_race_learns_base_and_head_and_appends_pass(
    lake: lakebed.Lake, orders: lakebed.Table
) -> None:
    orders.append(ROWS)
    late = lake.transaction()
    late.table("sales.orders").overwrite(ROWS[:1])
    orders.overwrite(ROWS)
    append = lake.transaction()
    append.table("sales.orders").append(ROWS)
    orders.append(ROWS)

    with pytest.raises(lakebed.CommitConflict) as conflict:
        late.commit()
    passed = append.commit()

    assert conflict.value.context["base"] == 1
    assert conflict.value.context["with_version"] == 2
    assert conflict.value.context["head"] == 3
    assert passed["sales.orders"].version == 4


def test_st_11_a_conflict_is_tried_again_and_a_refusal_is_not(
    lake: lakebed.Lake, orders: lakebed.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders.append(ROWS)
    tries = []
    commit = Committer.commit

    def raced(self: Committer, proposal: Any) -> Any:
        tries.append(proposal)
        if len(tries) == 1:
            monkeypatch.setattr(Committer, "commit", commit)
            orders.overwrite(ROWS[:1])  # another writer is faster
            monkeypatch.setattr(Committer, "commit", raced)
        return commit(self, proposal)

    monkeypatch.setattr(Committer, "commit", raced)

    assert orders.overwrite(ROWS[1:]).version == 3
    assert len(tries) == 2
    with pytest.raises(lakebed.SchemaMismatch):
        orders.append([{"id": "no number"}])
    assert len(tries) == 2
    assert orders.to_arrow().to_pylist() == ROWS[1:]


def test_st_12_an_empty_transaction_is_refused(lake: lakebed.Lake, orders: lakebed.Table) -> None:
    with pytest.raises(lakebed.NoChanges), lake.transaction():
        pass
    looked = lake.transaction()
    looked.table("sales.orders").scan().to_arrow()
    with pytest.raises(lakebed.NoChanges):
        looked.commit()

    assert orders.version == 0


@pytest.mark.parametrize("isolation", ["write_serializable", "serializable"])
def test_st_13_isolation_decides(lake: lakebed.Lake, orders: lakebed.Table, isolation: str) -> None:
    late = lake.transaction(isolation=isolation)
    late.table("sales.orders").overwrite(ROWS[:1])
    orders.append(ROWS[1:])  # a blind append that the overwrite did not see

    if isolation == "serializable":
        with pytest.raises(lakebed.CommitConflict):
            late.commit()
    else:
        late.commit()
        assert orders.row_count == 2


def test_st_14_the_summary_counts_and_keeps_what_the_caller_adds(orders: lakebed.Table) -> None:
    orders.append(ROWS)

    commit = orders.overwrite(ROWS[:1], summary={"job": "nightly"})
    shown = metadata_of(orders)["snapshots"][-1]["summary"]

    assert commit.summary["added_files"] == commit.summary["removed_files"] == 1
    assert (commit.summary["added_rows"], commit.summary["removed_rows"]) == (1, 2)
    size = str(orders.files()[0].size_bytes)
    assert shown["added-data-files"] == shown["deleted-data-files"] == "1"
    assert (shown["added-records"], shown["added-files-size"]) == ("1", size)
    assert shown["job"] == commit.summary["job"] == "nightly"


@pytest.mark.parametrize(
    "rows",
    [
        [{"id": 1, "nmae": "a"}],
        [{"id": None, "name": "a"}],
        [{"name": "a"}],
        [{"id": "1"}],
        [{"id": 2**63}],
        pa.table({"id": pa.array([1], pa.int64()), "name": [b"a"]}),
    ],
)
def test_st_44_rows_that_do_not_fit_are_refused(orders: lakebed.Table, rows: Any) -> None:
    with pytest.raises(lakebed.SchemaMismatch) as refused:
        orders.append(rows)

    assert refused.value.hint
    assert orders.version == 0
    assert not list(Path(orders.location).glob("data/**/*.parquet"))


def test_st_55_statistics_are_kept_by_field_id(orders: lakebed.Table) -> None:
    orders.append(ROWS)
    orders.alter().add_column("late", "int").commit()
    orders.append([{"id": 7, "name": "seven", "amount": None, "late": 3}])

    plan = orders.scan().plan()
    stats = plan.files[1].file.stats
    late = orders.schema.find(("late",))
    entries = [
        e["data_file"]
        for m in avro(metadata_of(orders)["snapshots"][-1]["manifest-list"])
        for e in avro(m["manifest_path"])
    ]

    assert late is not None
    assert (stats[late.id].lower, stats[late.id].upper, stats[late.id].null_count) == (3, 3, 0)
    assert orders.scan(where="late = 4").plan().pruned == 1
    assert len(orders.scan(where="id >= 7").plan().files) == 1
    assert orders.scan(where="amount < 0").plan().pruned == 1
    bounds = [{b["key"]: b["value"] for b in e["lower_bounds"]} for e in entries]
    assert [b[late.id] for b in bounds if late.id in b] == [(3).to_bytes(4, "little")]
    log = Path(orders.location) / "_delta_log" / f"{3:020}.json"
    add = next(
        orjson.loads(line)["add"] for line in log.read_bytes().splitlines() if b'"add"' in line
    )
    assert orjson.loads(add["stats"])["maxValues"]["late"] == 3


def test_st_60_the_catalog_is_kept_and_a_full_namespace_is_not_dropped(tmp_path: Path) -> None:
    with lakebed.open(tmp_path / "lake", create=True) as lake:
        lake.create_table("a.b.c.t", "id long")
        lake.rename_table("a.b.c.t", "a.b.u")
        with pytest.raises(lakebed.AlreadyExists, match="not empty"):
            lake.drop_namespace("a.b")
        lake.drop_namespace("a.b.c")

    with lakebed.open(tmp_path / "lake") as lake:
        assert lake.namespaces() == ["a", "a.b"]
        assert lake.tables() == ["a.b.u"]
        assert lake.has_table("a.b.u")
        assert not lake.has_table("a.b.c.t")
        lake.drop_table("a.b.u", purge=True)
        lake.drop_namespace("a.b")
        assert lake.namespaces() == ["a"]


@pytest.mark.slow
def test_st_63_the_command_line_inspects_and_its_exit_codes_are_honest(tmp_path: Path) -> None:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        program = [sys.executable, "-m", "lakebed", *words]
        return subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert run("init", "shop").returncode == 0
    assert run("-l", "shop", "table", "create", "a.t", "id long").returncode == 0
    shown = run("-l", "shop", "table", "show", "a.t", "--json")
    history = run("-l", "shop", "history", "a.t", "--json")

    assert orjson.loads(shown.stdout)["name"] == "a.t"
    assert [c["operation"] for c in orjson.loads(history.stdout)] == ["create"]
    assert run("-l", "shop", "check").returncode == 0
    assert run("-l", "shop", "table", "show", "a.missing").returncode == 1
    assert run("-l", "shop", "history", "a.t", "--format", "nonsense").returncode == 64
    assert run("-l", "nowhere", "table", "list").returncode == 1


def test_st_64_the_python_api_does_what_it_says(lake: lakebed.Lake, orders: lakebed.Table) -> None:
    orders.append(ROWS)
    orders.overwrite(ROWS[:1])
    orders.alter().add_column("note", "string").commit()

    again = lake.table("sales.orders")

    assert [f.name for f in again.schema.fields] == ["id", "name", "amount", "note"]
    assert again.to_arrow().to_pylist() == [{**ROWS[0], "note": None}]
    assert again.scan().to_pandas()["id"].tolist() == [1]
    assert again.scan(version=1).to_arrow().num_rows == 2
    assert all(hasattr(lakebed, name) for name in lakebed.__all__)


def test_st_64_writers_of_several_threads_all_count(orders: lakebed.Table) -> None:
    threads = [threading.Thread(target=lambda n=n: orders.append([{"id": n}])) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(orders.to_arrow()["id"].to_pylist()) == list(range(8))
