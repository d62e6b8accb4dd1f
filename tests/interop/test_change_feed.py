"""Delta's own change feed: stock readers tell of a table's rows what `changes` tells."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

import lakebed
from lakebed import Lake, Table
from lakebed.rowops.pairing import AFTER, BEFORE
from tests.interop.spark import SparkRefused, spark_changes

FEED = {"delta.enableChangeDataFeed": "true"}
OFF = {"delta.enableChangeDataFeed": "false"}
COPY = {f"write.{word}.mode": "copy-on-write" for word in ("delete", "update", "merge")}
SCHEMA = "id long not null, region string, n double"
WORDS = {BEFORE: "update_preimage", AFTER: "update_postimage"}
ABOUT = ("_change_type", "_commit_version", "_commit_timestamp")
Told = Counter[tuple[Any, ...]]


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    with lakebed.open(tmp_path / "lake", create=True) as opened:
        yield opened


def rows(first: int, end: int) -> list[dict[str, Any]]:
    regions = ("north", "south", "west", None)
    return [{"id": i, "region": regions[i % 4], "n": i / 2} for i in range(first, end)]


def ours(table: Table, first: int) -> Told:
    """What happened at version `first` and after it, in Delta's words."""
    found = table.changes(from_version=first - 1 if first else None).to_arrow()
    names = dict(zip(("_op", "_version", "_time"), ABOUT, strict=True))
    return told(found.rename_columns(names))


def told(found: pa.Table) -> Told:
    names = [n for n in found.column_names if n not in ABOUT]
    return Counter(
        (
            *(str(row[n]) for n in sorted(names)),
            WORDS.get(row["_change_type"], row["_change_type"]),
            row["_commit_version"],
            row["_commit_timestamp"].timestamp(),
        )
        for row in found.to_pylist()
    )


def deltalakes(table: Table, first: int) -> Told:
    stream = deltalake.DeltaTable(table.location).load_cdf(starting_version=first)
    return told(pa.table(stream))


def sparks(table: Table, first: int) -> Told:
    return told(spark_changes(table.location, first, table.version))


def live(table: Table) -> None:
    """Every kind of commit that changes rows, and some that change none."""
    table.append(rows(0, 40))
    table.delete("id IN (3, 4, 7)")
    table.update({"n": "n + 1"}, "id < 10")
    table.update({"n": "n"}, "id < 10")
    table.update({"region": "'east'"}, "id IN (0, 1, 11)")
    merge = table.merge([*rows(10, 13), *rows(38, 44)], "t.id = s.id")
    merge.when_matched_update({"n": "s.n + 100"}, "s.id < 12").when_matched_delete("s.id = 39")
    merge.when_matched_update_all().when_not_matched_insert({"id": "s.id"}, "s.id = 43")
    merge.when_not_matched_insert_all().when_not_matched_by_source_update({"n": "-1"}, "t.id = 20")
    merge.when_not_matched_by_source_delete("t.id > 33").execute()
    table.overwrite(rows(30, 36), where="id BETWEEN 30 AND 40")
    table.overwrite(rows(5, 15))
    table.restore(version=3)
    table.truncate()
    table.restore(version=2)
    table.append(rows(90, 92))


MODES: dict[str, dict[str, Any]] = {
    "vectors": {"properties": FEED},
    "copies": {"properties": {**FEED, **COPY}, "primary_key": ["id"]},
    "v2 with a key": {
        "properties": {**FEED, **COPY, "lakebed.upgrade": "never"},
        "primary_key": ["id"],
    },
    "partitioned": {"properties": FEED, "partition_by": ["region"]},
    "partitioned copies": {
        "properties": {**FEED, **COPY},
        "partition_by": ["region"],
        "primary_key": ["id"],
    },
    "partitioned by bucket": {"properties": FEED, "partition_by": ["bucket(4, id)"]},
}


@pytest.mark.parametrize("mode", MODES)
def test_deltalake_tells_of_every_commit_what_changes_tells(lake: Lake, mode: str) -> None:
    table = lake.create_table("s.t", SCHEMA, **MODES[mode])

    live(table)

    expected = ours(table, 0)
    assert deltalakes(table, 0) == expected
    assert {key[3] for key in expected} == {"insert", "delete", *WORDS.values()}
    for version in range(1, table.version + 1):
        assert deltalakes(table, version) == ours(table, version), version
    report = lake.check()
    assert (report.findings, report.notes) == ([], [])


@pytest.mark.parametrize("mode", ["vectors", "partitioned copies"])
def test_spark_tells_of_every_commit_what_changes_tells(lake: Lake, mode: str) -> None:
    table = lake.create_table("s.t", SCHEMA, **MODES[mode])

    live(table)

    assert sparks(table, 0) == ours(table, 0)
    assert sparks(table, 5) == ours(table, 5)


def test_spark_reads_the_feed_of_mapped_columns_but_not_across_a_rename(lake: Lake) -> None:
    table = lake.create_table("s.t", SCHEMA, partition_by=["region"], properties=FEED)
    table.append(rows(0, 8))
    table.alter().rename_column("n", "m").rename_column("region", "a region").commit()
    renamed = table.version
    table.update({"m": "m + 1"}, "id < 3")
    table.delete("id = 5")

    assert sparks(table, renamed + 1) == ours(table, renamed + 1)
    with pytest.raises(SparkRefused, match="DELTA_CHANGE_DATA_FEED_INCOMPATIBLE"):
        sparks(table, 1)


def test_deltalake_refuses_the_feed_of_mapped_columns(lake: Lake) -> None:
    table = lake.create_table("s.t", SCHEMA, properties=FEED)
    table.append(rows(0, 8))
    table.alter().rename_column("n", "m").commit()
    table.delete("id = 5")

    with pytest.raises(deltalake.exceptions.DeltaError, match="Column mapping is not supported"):
        deltalakes(table, table.version)


def test_deltalake_reads_the_feed_across_a_dropped_column_and_spark_after_it(lake: Lake) -> None:
    table = lake.create_table("s.t", SCHEMA, properties=FEED)
    table.append(rows(0, 8))
    table.delete("id = 4")
    table.alter().drop_column("n").commit()
    table.delete("id = 5")

    assert deltalakes(table, 1) == ours(table, 1)
    assert sparks(table, table.version) == ours(table, table.version)
    with pytest.raises(SparkRefused, match="DELTA_CHANGE_DATA_FEED_INCOMPATIBLE"):
        sparks(table, 1)


def test_deltalake_refuses_the_feed_of_widened_columns_and_spark_reads_what_came_after(
    lake: Lake,
) -> None:
    table = lake.create_table("s.t", "id long, n int", properties=FEED)
    table.append([{"id": i, "n": i} for i in range(9)])
    table.alter().widen_column("n", "long").commit()
    table.update({"n": f"n + {2**40}"}, "id = 1")

    with pytest.raises(deltalake.exceptions.DeltaError, match="TypeWidening"):
        deltalakes(table, table.version)
    assert sparks(table, table.version) == ours(table, table.version)
    with pytest.raises(SparkRefused, match="DELTA_CHANGE_DATA_FEED_INCOMPATIBLE"):
        sparks(table, 1)


def test_partitions_with_other_characters_are_told(lake: Lake) -> None:
    """deltalake does not decode the paths of the files that it reads changes from."""
    table = lake.create_table("s.t", SCHEMA, partition_by=["region"], properties=FEED)
    regions = ("a b", "ü%", "x/y", "=")
    table.append([{"id": i, "region": regions[i % 4], "n": 1.0} for i in range(40)])
    table.delete("id < 5")

    assert deltalakes(table, 1) == ours(table, 1)
    assert sparks(table, 1) == ours(table, 1)


def test_both_refuse_versions_before_the_feed_and_while_it_is_off(lake: Lake) -> None:
    table = lake.create_table("s.t", rows(0, 20))
    table.delete("id = 1")
    table.set_properties(FEED)
    on = table.version
    table.delete("id = 2")

    assert deltalakes(table, on) == sparks(table, on) == ours(table, on)
    with pytest.raises(deltalake.exceptions.DeltaError, match="change data enabled"):
        deltalakes(table, 1)
    with pytest.raises(SparkRefused, match="DELTA_MISSING_CHANGE_DATA"):
        sparks(table, 1)

    table.set_properties(OFF)
    table.delete("id = 3")
    with pytest.raises(deltalake.exceptions.DeltaError, match="Change Data not enabled"):
        deltalakes(table, on)
    with pytest.raises(SparkRefused, match="DELTA_MISSING_CHANGE_DATA"):
        sparks(table, on)
    assert deltalakes(table, table.version) == ours(table, table.version), "told by the files"
    with pytest.raises(SparkRefused, match="DELTA_MISSING_CHANGE_DATA"):
        sparks(table, table.version)


def test_columns_that_are_added_and_values_of_every_shape_are_told(lake: Lake) -> None:
    schema = "id long, s struct<a: int, b: list<string>>, m map<string, double>, d decimal(10, 2)"
    table = lake.create_table("s.t", schema, properties=FEED)
    row = {"s": {"a": 1, "b": ["x", None]}, "m": [("k", 1.5)], "d": None}
    table.append([{"id": i, **row} for i in range(5)])
    table.alter().add_column("more", "binary").commit()
    table.update({"s.a": "7", "d": "1.25"}, "id = 1")
    table.delete("id = 2")

    assert deltalakes(table, 0) == ours(table, 0)
    assert sparks(table, 0).total() == ours(table, 0).total()


def test_a_log_that_begins_late_or_anew_tells_only_what_its_commits_did(lake: Lake) -> None:
    table = lake.create_table("s.t", rows(0, 9), properties=FEED, formats=["iceberg"])
    table.delete("id = 1")
    table.set_formats(["delta", "iceberg"])
    begun = table.version
    table.delete("id = 2")

    assert deltalakes(table, begun) == ours(table, begun)
    assert deltalakes(table, begun).total() == 1


def test_a_table_that_is_no_longer_shown_partitioned_tells_what_was_appended(lake: Lake) -> None:
    table = lake.create_table("s.t", SCHEMA, partition_by=["region"], properties=FEED)
    table.append(rows(0, 8))
    table.append([{"id": 9, "region": "", "n": 1.0}])
    table.delete("id = 4")

    assert deltalakes(table, 2) == ours(table, 2)
    assert sparks(table, 2) == ours(table, 2)
