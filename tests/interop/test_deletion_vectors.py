"""Tables with deletion vectors, at every version, through every reader of both formats."""

import random
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable

import lakebed
from lakebed import Lake, Table
from tests.interop.duckdb155 import asked_of_duckdb
from tests.interop.readers import (
    At,
    DeltaQuery,
    Ours,
    PolarsDelta,
    PolarsIceberg,
    PyIceberg,
    places,
)

BIG = 70_000
Ids = set[int]
READERS = [DeltaQuery(), PolarsDelta(), PyIceberg(), PolarsIceberg()]


@dataclass
class Story:
    """A table and the ids it should have at each version; both formats begin where told."""

    table: Table
    ids: list[Ids] = field(default_factory=list)
    delta_from: int = 0
    iceberg_from: int = 0

    def append(self, first: int, rows: int) -> None:
        """One file; `p` is its partition where there is one."""
        ids = list(range(first, first + rows))
        parts = pa.array([first % 3] * rows, pa.int32())
        self.table.append(pa.table({"id": ids, "p": parts}))
        self.note((self.ids[-1] if self.ids else set()) | set(ids))

    def delete(self, *ids: int) -> None:
        self.table.delete(f"id IN ({', '.join(map(str, ids))})")
        self.note(self.ids[-1] - set(ids))

    def note(self, ids: Ids | None = None) -> None:
        assert self.table.version == len(self.ids)
        self.ids.append(self.ids[-1] if ids is None else ids)


def create(lake: Lake, name: str, **options: object) -> Story:
    story = Story(lake.create_table(f"s.{name}", "id long, p int", **options))  # type: ignore[arg-type]  # options of many types
    story.note(set())
    return story


def scattered(seed: int, rows: int = 4_500) -> list[int]:
    return random.Random(seed).sample(range(BIG), rows)


def inline(lake: Lake) -> Story:
    story = create(lake, "inline")
    story.append(0, 10)
    story.append(10, 10)
    story.delete(0, 9, 15)
    story.delete(1, 2, 3)
    story.append(20, 5)
    story.delete(19)
    return story


def packed(lake: Lake) -> Story:
    story = create(lake, "packed")
    story.append(0, BIG)
    story.append(BIG, 10)
    story.delete(*scattered(1), BIG + 3)
    story.delete(*(set(scattered(2)) - set(scattered(1))))
    return story


def partitioned(lake: Lake) -> Story:
    story = create(lake, "partitioned", partition_by=["p"])
    story.append(0, 10)
    story.append(10, 10)
    story.append(20, 10)
    story.delete(5, 15, 25)
    story.delete(6, 26)
    return story


def checkpointed(lake: Lake) -> Story:
    properties = {"publish.delta.checkpoint-interval": "3"}
    story = create(lake, "checkpointed", properties=properties)
    story.append(0, BIG)
    story.delete(*scattered(3))
    story.append(BIG, 10)
    story.delete(BIG, BIG + 1)
    story.delete(BIG + 2)
    story.append(BIG + 10, 10)
    return story


def late_delta(lake: Lake) -> Story:
    story = create(lake, "late_delta", formats=["iceberg"])
    story.append(0, BIG)
    story.append(BIG, 10)
    story.delete(*scattered(4), BIG)
    story.table.set_formats(["delta", "iceberg"])
    story.note()
    story.delta_from = story.table.version
    story.delete(BIG + 1)
    return story


def late_iceberg(lake: Lake) -> Story:
    story = create(lake, "late_iceberg", formats=["delta"])
    story.append(0, 10)
    story.append(10, 10)
    story.delete(0, 10)
    story.table.set_formats(["delta", "iceberg"])
    story.note()
    story.iceberg_from = story.table.version
    story.delete(11)
    return story


def emptied(lake: Lake) -> Story:
    story = create(lake, "emptied")
    story.append(0, 5)
    story.append(5, 5)
    story.delete(0, 1)
    story.delete(2, 3, 4)  # nothing is left of the first file
    story.delete(5, 6, 7, 8, 9)
    story.append(10, 5)
    return story


def crowded(lake: Lake) -> Story:
    """Vectors of one commit in one file: many of one size, and a large one that came first."""
    story = create(lake, "crowded")
    story.append(0, BIG)
    for first in range(BIG, BIG + 60, 10):
        story.append(first, 10)
    story.delete(*scattered(5), *range(BIG + 1, BIG + 60, 10))
    story.delete(*range(BIG + 2, BIG + 60, 10))
    return story


STORIES: list[Callable[[Lake], Story]] = [
    inline,
    packed,
    partitioned,
    checkpointed,
    late_delta,
    late_iceberg,
    emptied,
    crowded,
]
NAMES = [make.__name__ for make in STORIES]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return lakebed.open(tmp_path_factory.mktemp("vectors"), create=True)


@pytest.fixture(scope="module")
def stories(lake: Lake) -> dict[str, Story]:
    return {make.__name__: make(lake) for make in STORIES}


def offered(story: Story, format_: str) -> dict[int, At]:
    first = story.delta_from if format_ == "delta" else story.iceberg_from
    found = {version: at for version, at in places(story.table).items() if version >= first}
    if format_ == "iceberg" and first:
        metadata = Path(story.table.location, "metadata")
        for version, at in found.items():
            (path,) = metadata.glob(f"{version - first:05d}-*.metadata.json")
            found[version] = replace(at, metadata_path=str(path))
    return found


@pytest.mark.filterwarnings("ignore")  # the readers' own
@pytest.mark.parametrize("reader", READERS, ids=lambda r: type(r).__name__)
@pytest.mark.parametrize("name", NAMES)
def test_every_reader_leaves_deleted_rows_out_at_every_version(
    stories: dict[str, Story], name: str, reader: DeltaQuery
) -> None:
    story = stories[name]

    for version, at in offered(story, reader.format).items():
        rows = reader.read(at)["id"].to_pylist()

        assert len(rows) == len(set(rows)), version
        assert set(rows) == story.ids[version], version


@pytest.mark.parametrize("name", NAMES)
def test_the_lake_reads_its_own_and_finds_nothing_wrong(
    lake: Lake, stories: dict[str, Story], name: str
) -> None:
    story = stories[name]
    for version, at in places(story.table).items():
        assert set(Ours(story.table).read(at)["id"].to_pylist()) == story.ids[version]

    assert lake.check(story.table.name).findings == []


@pytest.fixture(scope="module")
def duckdb(stories: dict[str, Story]) -> dict[tuple[str, str, int], Ids]:
    """All answers of one process: DuckDB 1.5.5 has an interpreter of its own."""
    asked = {}
    for name, story in stories.items():
        for version, at in offered(story, "delta").items():
            asked[name, "delta", version] = f"delta_scan('{at.location}', version={version})"
        for version, at in offered(story, "iceberg").items():
            source = f"iceberg_scan('{at.metadata_path}')"
            # Some files first: DuckDB keeps what it read, and must not mix up vectors by that.
            asked[name, "some", version] = f"{source} WHERE id >= {BIG + 30}"
            asked[name, "iceberg", version] = source
    answers = asked_of_duckdb([f"SELECT id FROM {source}" for source in asked.values()])
    assert not [a["error"] for a in answers if "error" in a]
    return {key: set(map(int, a["rows"])) for key, a in zip(asked, answers, strict=True)}


@pytest.mark.parametrize("format_", ["delta", "iceberg"])
@pytest.mark.parametrize("name", NAMES)
def test_duckdb_leaves_deleted_rows_out_at_every_version(
    stories: dict[str, Story],
    duckdb: dict[tuple[str, str, int], Ids],
    name: str,
    format_: str,
) -> None:
    for version in offered(stories[name], format_):
        ids = stories[name].ids[version]
        assert duckdb[name, format_, version] == ids, version
        if format_ == "iceberg":
            assert duckdb[name, "some", version] == {i for i in ids if i >= BIG + 30}, version


def test_deltalakes_arrow_reader_refuses(stories: dict[str, Story]) -> None:
    at = places(stories["inline"].table)[3]

    with pytest.raises(Exception, match=r"(?i)deletion ?vector"):
        deltalake.DeltaTable(at.location, version=3).to_pyarrow_table()


def test_small_vectors_stand_in_the_log_and_large_ones_in_files(stories: dict[str, Story]) -> None:
    small, large = (Path(stories[name].table.location) for name in ("inline", "packed"))

    assert list(small.glob("_deletes/*.bin")) == []
    assert len(list(small.glob("_deletes/*.puffin"))) == 3
    assert len(list(large.glob("_deletes/*.bin"))) == 2
    assert len(list(large.glob("_deletes/*.puffin"))) == 2


def test_pyiceberg_sees_the_counts_that_java_would_write(stories: dict[str, Story]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = StaticTable.from_metadata(stories["inline"].table.location)
    summaries = [s.summary for s in table.snapshots()]

    first, second = (
        {k: str(s[k]) for k in ("added-dvs", "added-position-deletes", "total-position-deletes")}
        for s in summaries[2:4]
        if s is not None
    )
    assert first == {
        "added-dvs": "2",
        "added-position-deletes": "3",
        "total-position-deletes": "3",
    }
    assert second == {
        "added-dvs": "1",
        "added-position-deletes": "5",
        "total-position-deletes": "6",
    }
