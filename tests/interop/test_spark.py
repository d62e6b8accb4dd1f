"""The tables of every type through Spark, with delta-spark and with iceberg-spark-runtime.

Spark takes a second where others take milliseconds, so it gets less to do: of a partitioned table
conditions on the partition column alone, and two versions in Delta. Delta shows hidden partitions
as plain tables, which are read once.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lakebed
from lakebed import Lake
from lakebed.formats.delta.log import commit_path
from lakebed.model.ids import Version
from tests.interop import expected
from tests.interop.every_type import CASES, PARTITIONED, Case
from tests.interop.plain import Rows, plain_rows
from tests.interop.readers import At, Filter, day, moment
from tests.interop.spark import Format, SparkRefused, spark_rows, spark_table
from tests.interop.test_delta_readers import Published, by_id, with_history
from tests.interop.test_every_type import HEAD, Built, build, filters
from tests.interop.test_iceberg_readers import bag, make


@dataclass(frozen=True)
class Reader:
    format: Format

    @property
    def name(self) -> str:
        return f"Spark {self.format}"

    def read(
        self, at: At, *, columns: list[str] | None = None, where: str | None = None
    ) -> pa.Table:
        if self.format == "iceberg":
            return spark_table("iceberg", str(at.metadata_path), columns=columns, where=where)
        return spark_table("delta", at.location, version=at.version, columns=columns, where=where)

    def versions(self, case: Case) -> tuple[int, ...]:
        if self.format == "iceberg" or case not in PARTITIONED:
            return tuple(range(HEAD + 1))
        return (HEAD,) if is_hidden(case) else (HEAD // 2, HEAD)

    def conditions(self, case: Case) -> list[Filter]:
        asked = [c for c in filters(case) if c.kind != "uuid" or c.value is None]
        if case not in PARTITIONED:
            return asked
        plain = self.format == "delta" and is_hidden(case)
        return [] if plain else [c for c in asked if c.column != "other"]


def is_hidden(case: Case) -> bool:
    """Partitioned by more than a column's value."""
    return not case.name.startswith("identity")


READERS = (Reader("delta"), Reader("iceberg"))
Pair = tuple[Case, Reader]
PAIRS = [(case, reader) for case in CASES for reader in READERS if reader.format in case.formats]
FILTERED = [
    (case, reader)
    for case, reader in PAIRS
    if (reader.name, case.feature) not in expected.REFUSES and reader.conditions(case)
]


def each(pairs: list[Pair]) -> pytest.MarkDecorator:
    ids = [f"{case.name}-{reader.format}" for case, reader in pairs]
    return pytest.mark.parametrize(("case", "reader"), pairs, ids=ids)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    with lakebed.open(tmp_path_factory.mktemp("spark"), create=True) as opened:
        yield opened


@pytest.fixture(scope="module")
def built() -> dict[str, Built]:
    return {}


@each(PAIRS)
def test_spark_returns_our_rows_or_refuses(
    case: Case, reader: Reader, lake: Lake, built: dict[str, Built]
) -> None:
    ours = build(lake, built, case)
    refusal = expected.REFUSES.get((reader.name, case.feature))
    if refusal is not None:
        with pytest.raises(SparkRefused, match=refusal):
            reader.read(ours.at[HEAD])
        return

    for version in reader.versions(case):
        read = plain_rows(reader.read(ours.at[version]))
        assert read == as_spark_has_them(case, ours.rows_at(version)), version


def as_spark_has_them(case: Case, rows: Rows) -> Rows:
    """Spark has no type for uuids: they are text."""
    if not any("uuid" in kind for kind, _ in case.columns.values()):
        return rows
    return {key: {name: _uuids_as_text(v) for name, v in row.items()} for key, row in rows.items()}


def _uuids_as_text(value: Any) -> Any:
    match value:
        case bytes():
            return str(UUID(bytes=value))
        case dict():
            return {name: _uuids_as_text(v) for name, v in value.items()}
        case list():
            return [_uuids_as_text(v) for v in value]
        case tuple():
            return tuple(_uuids_as_text(v) for v in value)
        case _:
            return value


@each(FILTERED)
def test_spark_finds_what_matches(
    case: Case, reader: Reader, lake: Lake, built: dict[str, Built]
) -> None:
    """Filtered, so that it may prune by our statistics, and told row by row: the same keys."""
    asked = reader.conditions(case)
    at = build(lake, built, case).at[HEAD]
    masks = [f"{mask(condition)} AS m{n}" for n, condition in enumerate(asked)]
    told = reader.read(at, columns=["id", *masks])

    for number, condition in enumerate(asked):
        found = reader.read(at, columns=["id"], where=mask(condition))
        wanted = told.filter(pc.field(f"m{number}"))
        assert sorted(found["id"].to_pylist()) == sorted(wanted["id"].to_pylist()), condition


def mask(condition: Filter) -> str:
    name = f"`{condition.column}`"
    match condition.operator:
        case "null":
            return f"{name} IS NULL"
        case "not null":
            return f"{name} IS NOT NULL"
        case operator:
            return f"{name} {operator} {literal(condition)}"


def literal(condition: Filter) -> str:
    value, kind = condition.value, condition.kind
    match kind.partition("(")[0]:
        case "binary" | "fixed":
            return f"X'{value.hex()}'"
        case "string":
            return f"CAST(X'{value.encode().hex()}' AS STRING)"
        case "uuid":
            return f"'{UUID(bytes=value)}'"
        case "date":
            return f"DATE '{day(value).isoformat()}'"
        case "timestamp":
            return f"CAST('{moment(value).isoformat()}Z' AS TIMESTAMP)"
        case "timestamp_ntz":
            return f"CAST('{moment(value).isoformat()}' AS TIMESTAMP_NTZ)"
        case "decimal":
            return f"CAST('{value:f}' AS {kind})"
        case _:
            return f"CAST('{value!r}' AS {kind})"


def test_spark_reads_a_checkpoint_that_stands_for_the_commits_before_it(tmp_path: Path) -> None:
    table = with_history(tmp_path)
    for number in range(20):
        (Path(table.path) / commit_path(Version(number))).unlink()

    found = spark_rows("delta", table.path)

    assert sorted(found, key=by_id) == table.versions[-1]


def test_spark_goes_back_a_week_in_delta_unless_the_table_keeps_more(tmp_path: Path) -> None:
    week, kept = (
        Published(tmp_path / name, "id long", properties=properties)
        for name, properties in (
            ("week", {}),
            ("kept", {"delta.deletedFileRetentionDuration": "interval 36500 days"}),
        )
    )
    for table in (week, kept):  # of years ago
        table.append([{"id": 0}]).append([{"id": 1}])

    with pytest.raises(SparkRefused, match="RETENTION_DURATION"):
        spark_rows("delta", week.path, version=1)
    assert spark_rows("delta", kept.path, version=1) == [{"id": 0}]
    assert len(spark_rows("delta", week.path)) == 2


def test_spark_travels_to_every_snapshot(tmp_path: Path) -> None:
    table = make(tmp_path, "id long, g string", by=("g",))
    for number in range(6):
        gone = [number - 2] if number > 2 else []
        table.commit([{"id": number, "g": "xy"[number % 2]}], remove=gone)

    for snapshot in table.ledger.snapshots:
        found = spark_rows("iceberg", table.metadata_path, version=snapshot.id)
        assert bag(found) == bag(table.rows_at(snapshot.version))


def test_spark_still_compares_uuids_as_signed_numbers(lake: Lake, built: dict[str, Built]) -> None:
    """When it no longer does: ask its conditions on uuids, and take the line out of docs."""
    case = next(c for c in CASES if c.name == "c_uuid")
    at = build(lake, built, case).at[HEAD]
    last = f"c_uuid = '{UUID(int=2**128 - 1)}'"

    found = spark_rows("iceberg", str(at.metadata_path), columns=["id"], where=last)
    told = spark_rows("iceberg", str(at.metadata_path), columns=["id", f"{last} AS m"])

    assert found == []
    assert [row["id"] for row in told if row["m"]] == [3]


def test_spark_still_cannot_read_partitions_by_fixed(tmp_path: Path, lake: Lake) -> None:
    """Why a table partitioned by the value of a fixed is refused while Iceberg is published."""
    table = make(tmp_path, "v fixed(2), n int", by=("v",))
    table.commit([{"v": b"\xff\xff", "n": 1}])

    with pytest.raises(SparkRefused, match="AvroRuntimeException"):
        spark_table("iceberg", table.location)
    with pytest.raises(lakebed.InvalidInput, match="partitioned by a fixed"):
        lake.create_table("types.by_fixed", "v fixed(2)", formats=["iceberg"], partition_by=["v"])
    lake.create_table(
        "types.by_bucket", "v fixed(2)", formats=["iceberg"], partition_by=["bucket(4, v)"]
    )
