"""Plans of selective queries over very many files, by conditions that were never asked before.

The files are not there: their metadata is written straight into the rows. One in a hundred was
removed or has lost rows, and every process commits before it plans.
"""

import os
import random
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.measure import Call, Case, Fact, Measure, Results, Verdict, alike, at_most

if TYPE_CHECKING:
    from lakebed.meta.store import Store
    from lakebed.model.files import LiveFile
    from lakebed.model.history import TableHead
    from lakebed.model.types import Stored

_FILES = 1_000_000
_TINY = 700
_PLANS = 10  # in one call
_BATCH = 20_000
_ROWS = 100  # of a file
_PER_DAY = 50  # files
_STEP = 7_919  # a prime: files in another order
_DAY = 86_400 * 10**6
_KINDS = {"clustered": 20, "unclustered": 40, "text": 40, "partition": 20}  # most CPU ms
_POSTGRES = "LAKEBED_TEST_POSTGRES"


@dataclass(frozen=True, slots=True)
class _Shape:
    """Of the file `n`: the values it holds, and the conditions that find it."""

    files: int

    def other(self, n: int) -> int:
        return n * _STEP % self.files

    def day(self, n: int) -> int:
        return n // _PER_DAY

    def is_live(self, n: int) -> bool:
        return n % 200 != 7

    def loses(self, n: int) -> bool:
        return n % 200 == 13

    def condition(self, kind: str, n: int) -> str:
        match kind:
            case "clustered":
                return f"a = {n * _ROWS + 1}"
            case "unclustered":
                return f"b = {self.other(n) * _ROWS + 1}"
            case "text":
                return f"c = 'customer-{self.other(n):09d}-5'"
            case _:
                day = self.day(n)
                return f"d >= TIMESTAMP '{_moment(day)}' AND d < TIMESTAMP '{_moment(day + 1)}'"

    def expected(self, kind: str, n: int) -> list[str]:
        same = [n]
        if kind == "partition":
            first = self.day(n) * _PER_DAY
            same = list(range(first, min(first + _PER_DAY, self.files)))
        return [_path(i) for i in same if self.is_live(i)]


def _moment(day: int) -> str:
    from datetime import UTC, datetime, timedelta

    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=day)).strftime("%Y-%m-%d")


def _path(n: int) -> str:
    return f"data/{n:07d}.parquet"


class LakebedPlan:
    environment = "lakebed"

    def __init__(self, owner: str, postgres: str | None) -> None:
        self.owner = owner
        self._postgres = postgres

    def make(self, folder: Path, case: Case, data: Path) -> None:
        import lakebed
        from lakebed.core.index import FileIndex

        with lakebed.open(self._uri(folder), create=True, warehouse=self._root(folder)) as lake:
            table = lake.create_table(
                "bench.t",
                "a long, b long, c string, d timestamp",
                partition_by=["day(d)"],
                formats="delta",
            )
            table.append(_row())
            parts = lake._parts  # noqa: SLF001 - no door takes files that are not there
            head = parts.catalog.get(table.id, table.name)
            store = parts.planner._store  # noqa: SLF001 - as above
            _fill(store, head, _Shape(case.sizes["files"]))
            index = FileIndex(store)
            while index.extend(table.id):
                pass

    def open(self, folder: Path, case: Case, data: Path) -> Call:
        import lakebed

        shape = _Shape(case.sizes["files"])
        lake = lakebed.open(self._uri(folder))
        table = lake.table("bench.t")
        table.append(_row())
        table.scan(where="a = -1").plan()  # what is loaded when it is first needed
        wanted = [random.randrange(shape.files) for _ in range(_PLANS)]

        def plans() -> list[list[str]]:
            return [
                [f.file.path for f in table.scan(where=where).plan().files]
                for where in (shape.condition(case.text, n) for n in wanted)
            ]

        def facts(answer: object) -> dict[str, Fact]:
            assert isinstance(answer, list)
            # The rows that were really appended lie outside all conditions.
            right = [shape.expected(case.text, n) for n in wanted] == answer
            return {"right": int(right), "files": sum(map(len, answer))}

        return Call(plans, facts)

    def _uri(self, folder: Path) -> str:
        if self._postgres is None:
            return str(folder / "lake")
        server, schema = os.environ[self._postgres], f"bench_{folder.parents[1].name[-8:]}"
        return f"{server}{'&' if '?' in server else '?'}schema={schema.replace('-', '_').lower()}"

    def _root(self, folder: Path) -> str | None:
        return None if self._postgres is None else str(folder / "warehouse")


def _row() -> list[dict[str, object]]:
    from datetime import UTC, datetime

    return [{"a": -5, "b": -5, "c": uuid.uuid4().hex, "d": datetime(2300, 1, 1, tzinfo=UTC)}]


def _fill(store: "Store", head: "TableHead", shape: _Shape) -> None:
    from dataclasses import replace

    from lakebed.meta import files, tables, vectors
    from lakebed.model.ids import VectorId
    from lakebed.model.vectors import Positions, place_vectors

    assert head.snapshot_id is not None
    bitmap, vector_id, live_files = Positions([3]).to_bytes(), head.next_vector_id, head.live_files
    for first in range(0, shape.files, _BATCH):
        batch = [_file(head, shape, n) for n in range(first, min(first + _BATCH, shape.files))]
        losing = [f for f in batch if shape.loses(f.id - head.next_file_id)]
        made = place_vectors(
            [(bitmap, 1)] * len(losing),
            VectorId(vector_id),
            sequence_number=head.last_sequence_number,
            snapshot_id=head.snapshot_id,
        )
        given = {f.id: vector for f, vector in zip(losing, made, strict=True)}
        gone = [f for f in batch if not shape.is_live(f.id - head.next_file_id)]
        with store.write(durable=False) as tx:
            files.insert_files(tx, head.id, batch)
            vectors.insert_vectors(tx, head.id, [(given[f.id], f.id, bitmap) for f in losing])
            shown = [replace(f, vector=given.get(f.id)) for f in batch]
            files.open_intervals(tx, head.id, shown)
            files.close_intervals(tx, head.id, gone, head.version)
        vector_id += len(made)
        live_files += len(batch) - len(gone)
    with store.write() as tx:
        filled = replace(
            head,
            next_file_id=head.next_file_id + shape.files,
            next_vector_id=vector_id,
            live_files=live_files,
            live_rows=head.live_rows + (live_files - head.live_files) * _ROWS,
        )
        tables.advance_table(tx, filled)


def _file(head: "TableHead", shape: _Shape, n: int) -> "LiveFile":
    from lakebed.model.files import ColumnStats, DataFile, LiveFile
    from lakebed.model.ids import FieldId, FileId, SpecId, Version

    a, b, day = n * _ROWS, shape.other(n) * _ROWS, shape.day(n)
    text = f"customer-{shape.other(n):09d}"
    bounds: list[tuple[Stored, Stored]] = [
        (a, a + _ROWS - 1),
        (b, b + _ROWS - 1),
        (f"{text}-0", f"{text}-9"),
        (day * _DAY, (day + 1) * _DAY - 1),
    ]
    stats = {
        FieldId(number): ColumnStats(_ROWS, 0, None, 800, low, high)
        for number, (low, high) in enumerate(bounds, 1)
    }
    file = DataFile(_path(n), 10_000, _ROWS, SpecId(0), (day,), stats)
    assert head.snapshot_id is not None
    place = (Version(head.version - 1), None, head.last_sequence_number, head.snapshot_id, None)
    return LiveFile(FileId(head.next_file_id + n), file, *place)


def _cases(tiny: bool) -> Sequence[Case]:
    files = _TINY if tiny else _FILES
    systems = tuple(SYSTEMS)
    return [Case(kind, "files", {"files": files}, kind, systems) for kind in _KINDS]


def _judge(results: Results) -> Iterator[Verdict]:
    for kind, most in _KINDS.items():
        for name, figures in results.get(kind, {}).items():
            right = all(s.facts["right"] == 1 for s in figures.samples)
            yield alike(kind, f"{name}: exactly the files that can match", str(right), right)
            each = figures.median_cpu_s / _PLANS * 1000
            yield at_most(kind, f"{name}: CPU of a plan <= {most} ms", each, most, " ms")


SYSTEMS = {"lakebed": LakebedPlan("lakebed", None)}
if os.environ.get(_POSTGRES):
    SYSTEMS["lakebed-postgres"] = LakebedPlan("lakebed-postgres", _POSTGRES)

MEASURE = Measure(
    "plan",
    "Plans of selective queries over a million files, right after a commit",
    SYSTEMS,
    _cases,
    _judge,
    changes=False,
)
