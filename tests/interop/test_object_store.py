"""A warehouse on S3: what the lake promises on a disk, and stock readers from the bucket."""

import logging
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import deltalake
import polars as pl
import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable

import lakebed
from lakebed import Lake, Table
from lakebed.model.errors import CommitConflict
from tests.interop.duckdb155 import asked_of_duckdb
from tests.interop.every_type import CASES, Case
from tests.interop.every_type import ROWS as TYPE_ROWS
from tests.interop.plain import plain_rows
from tests.stores import Bucket, new_bucket

pytestmark = [
    pytest.mark.objects,
    # Polars says so once per scan, because its own planner is a package of its own.
    pytest.mark.filterwarnings("ignore:Iceberg scan planning"),
]
SCHEMA = pa.schema(
    {
        "id": pa.int64(),
        "name": pa.string(),
        "price": pa.decimal128(9, 2),
        "at": pa.timestamp("us", "UTC"),
        "tags": pa.list_(pa.string()),
    }
)
ROWS = [
    {"id": i, "name": f"n {i % 3}/ü", "price": Decimal(i), "at": i * 1_000_000, "tags": ["a", None]}
    for i in range(1, 9)
]
KEPT = [row for row in ROWS if row["id"] not in (2, 7)]
WRITER = """
import sys
import lakebed
with lakebed.open(sys.argv[1]) as lake:
    for number in range(int(sys.argv[3])):
        lake.table("shop.log").append([{"writer": int(sys.argv[2]), "number": number}])
"""


@pytest.fixture(scope="module")
def bucket() -> Bucket:
    return new_bucket()


@pytest.fixture(scope="module")
def lake(bucket: Bucket, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    place = tmp_path_factory.mktemp("lake")
    with lakebed.open(
        place, create=True, warehouse=bucket.uri, storage_options=bucket.options
    ) as opened:
        opened.create_namespace("shop")
        yield opened


@pytest.fixture(scope="module")
def table(lake: Lake) -> Table:
    """Two files in folders with awkward names, each with a deleted row."""
    made = lake.create_table("shop.orders", SCHEMA, partition_by=["name"])
    made.append(pa.Table.from_pylist(ROWS[:4], SCHEMA))
    made.append(pa.Table.from_pylist(ROWS[4:], SCHEMA))
    made.delete("id IN (2, 7)")
    return made


def by_id(rows: pa.Table) -> list[dict[str, object]]:
    found: list[dict[str, object]] = rows.select(SCHEMA.names).cast(SCHEMA).to_pylist()
    return sorted(found, key=lambda row: str(row["id"]))


EXPECTED = by_id(pa.Table.from_pylist(KEPT, SCHEMA))


def test_the_lake_reads_what_it_wrote_with_every_engine(lake: Lake, table: Table) -> None:
    assert by_id(table.scan().to_arrow()) == EXPECTED
    assert by_id(lake.sql("SELECT * FROM shop.orders").to_arrow()) == EXPECTED
    assert by_id(table.scan().to_polars().collect().to_arrow()) == EXPECTED
    found = lake.sql("SELECT id FROM shop.orders WHERE \"at\" < '1970-01-01 00:00:03'")
    assert found.to_arrow()["id"].to_pylist() == [1]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_type_comes_back_from_the_bucket(lake: Lake, case: Case) -> None:
    table = case.build(lake)
    whole = plain_rows(case.rows(table.arrow_schema, range(TYPE_ROWS)))

    for version in (table.version // 2, table.version):
        rows = {key: row for key, row in whole.items() if key < case.rows_at(version)}
        assert plain_rows(table.scan(version=version).to_arrow()) == rows
    assert plain_rows(lake.sql(f"SELECT * FROM {table.name}").to_arrow()) == rows
    assert lake.check(table.name).findings == []


def test_published_places_are_in_the_bucket(table: Table, bucket: Bucket) -> None:
    assert table.location == f"{bucket.uri}/shop/orders"


def test_deltalake_reads_from_the_bucket(table: Table, bucket: Bucket) -> None:
    options = {**bucket.environment(), "AWS_ALLOW_HTTP": "true"}

    read = deltalake.DeltaTable(table.location, storage_options=options)

    # Its reader of Arrow datasets knows no deletion vectors; its own does.
    rows = deltalake.QueryBuilder().register("t", read).execute("SELECT * FROM t").read_all()
    assert by_id(pa.table(rows)) == EXPECTED


def test_pyiceberg_reads_from_the_bucket(table: Table, bucket: Bucket) -> None:
    properties = {
        "s3.endpoint": bucket.endpoint,
        "s3.access-key-id": bucket.options["access_key_id"],
        "s3.secret-access-key": bucket.options["secret_access_key"],
        "s3.region": bucket.options["region"],
    }

    read = StaticTable.from_metadata(table.location, properties)

    assert by_id(read.scan().to_arrow()) == EXPECTED
    assert read.metadata.location == table.location


def test_polars_reads_from_the_bucket(table: Table, bucket: Bucket) -> None:
    options = {
        "aws_endpoint_url": bucket.endpoint,
        "aws_access_key_id": bucket.options["access_key_id"],
        "aws_secret_access_key": bucket.options["secret_access_key"],
        "aws_region": bucket.options["region"],
        "aws_allow_http": "true",
    }

    read = pl.scan_delta(table.location, storage_options=options).collect()

    assert by_id(read.to_arrow()) == EXPECTED


def test_duckdb_reads_from_the_bucket(table: Table, bucket: Bucket) -> None:
    secret = (
        "CREATE SECRET (TYPE s3, KEY_ID '{access_key_id}', SECRET '{secret_access_key}', "
        "REGION '{region}', URL_STYLE 'path', USE_SSL false, ENDPOINT '{host}')"
    ).format(**bucket.options, host=bucket.endpoint.partition("://")[2])
    count = "SELECT min(id) AS id, count(*) AS n, sum(id)::BIGINT AS total FROM "

    answers = asked_of_duckdb(
        [
            count + f"iceberg_scan('{table.location}', version_name_format = '%s%s.metadata.json')",
            count + f"delta_scan('{table.location}')",
        ],
        setup=[secret],
    )

    for answer in answers:
        assert "error" not in answer, answer
        (row,) = answer["rows"].values()
        assert (int(row["n"]), int(row["total"])) == (6, 27)


def test_check_finds_nothing_wrong_and_what_was_lost(lake: Lake, table: Table) -> None:
    assert lake.check().findings == []

    other = lake.create_table("shop.lossy", pa.schema({"id": pa.int64()}))
    other.append([{"id": 1}])
    storage = lake._parts.storage
    (file,) = [s.path for s in storage.list("shop/lossy/data")]
    storage.delete(file)

    codes = [finding.code for finding in lake.check().findings]
    assert codes
    lake.drop_table("shop.lossy", purge=True)
    assert list(storage.list("shop/lossy")) == []


def test_tables_change_together_and_the_second_of_two_that_collide_is_told(lake: Lake) -> None:
    for name in ("one", "two"):
        lake.create_table(f"shop.{name}", pa.schema({"id": pa.int64()}))
    with lake.transaction() as tx:
        tx.table("shop.one").append([{"id": 1}])
        tx.table("shop.two").append([{"id": 2}])
    late = lake.transaction()
    late.table("shop.one").delete("id = 1")

    lake.table("shop.one").delete("id = 1")

    with pytest.raises(CommitConflict):
        late.commit()
    assert lake.table("shop.one").scan().to_arrow().num_rows == 0
    assert lake.table("shop.two").scan().to_arrow()["id"].to_pylist() == [2]


def test_a_file_of_many_parts_comes_back_as_it_was(lake: Lake) -> None:
    rows = pa.table({"id": range(300_000), "text": [f"{i * 7919:064d}" for i in range(300_000)]})
    made = lake.create_table(
        "shop.large", rows.schema, properties={"write.parquet.compression-codec": "none"}
    )

    made.append(rows)

    storage = lake._parts.storage
    assert max(s.size_bytes for s in storage.list("shop/large/data")) > 16 << 20
    assert made.scan().to_arrow().sort_by("id") == rows
    found = lake.sql("SELECT text FROM shop.large WHERE id = 299999").to_arrow()
    assert found["text"].to_pylist() == [f"{299_999 * 7919:064d}"]


def test_writers_of_several_processes_lose_nothing_with_sqlite(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in bucket.environment().items():
        monkeypatch.setenv(name, value)
    written_by_processes(str(tmp_path / "lake"), f"{bucket.uri}/sqlite")


def test_writers_of_several_processes_lose_nothing_with_postgres(
    bucket: Bucket, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in bucket.environment().items():
        monkeypatch.setenv(name, value)
    written_by_processes(postgres_url, f"{bucket.uri}/postgres")


def written_by_processes(place: str, warehouse: str) -> None:
    with lakebed.open(place, create=True, warehouse=warehouse) as lake:
        lake.create_namespace("shop")
        lake.create_table("shop.log", pa.schema({"writer": pa.int64(), "number": pa.int64()}))
    command = [sys.executable, "-c", WRITER, place]
    writers = [subprocess.Popen([*command, str(n), "5"]) for n in range(3)]

    assert [writer.wait() for writer in writers] == [0, 0, 0]

    with lakebed.open(place) as lake:
        found = lake.table("shop.log").scan().to_arrow()
        pairs = zip(found["writer"].to_pylist(), found["number"].to_pylist(), strict=True)
        assert sorted(pairs) == [(w, n) for w in range(3) for n in range(5)]
        assert lake.check().findings == []
        assert max(commit.version for commit in lake.table("shop.log").history()) == 15


def test_keys_are_not_kept_or_told(
    bucket: Bucket, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    secret = bucket.options["secret_access_key"]
    with caplog.at_level(logging.DEBUG):
        lakebed.open(
            tmp_path / "lake",
            create=True,
            warehouse=f"{bucket.uri}/keys",
            storage_options=bucket.options,
        ).close()

    assert secret not in caplog.text
    assert secret.encode() not in (tmp_path / "lake" / "lakebed.db").read_bytes()
