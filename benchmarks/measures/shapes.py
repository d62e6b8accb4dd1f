"""A full scan of awkward tables beside a plain one with the same number of cells."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.measure import Call, Case, Fact, Measure, Results, Verdict, at_most

_COLUMNS = 10


def _column(first: int, rows: int, number: int) -> pa.Array:
    """Whole numbers, floats and text in turn."""
    values = pc.add(pc.multiply(pa.arange(first, first + rows), 7), number)
    kinds = (pa.int64(), pa.float64(), pa.string())
    return values.cast(kinds[number % 3])


def _flat(first: int, rows: int, columns: int = _COLUMNS) -> pa.RecordBatch:
    arrays = [_column(first, rows, n) for n in range(columns)]
    return pa.RecordBatch.from_arrays(arrays, names=[f"c{n}" for n in range(columns)])


def _wide(first: int, rows: int) -> pa.RecordBatch:
    return _flat(first, rows, 1_000)


def _structs(first: int, rows: int) -> pa.RecordBatch:
    """Two leaves on each of five levels."""
    inner: pa.Array | None = None
    for level in reversed(range(5)):
        members = [_column(first, rows, 2 * level), _column(first, rows, 2 * level + 1)]
        names = [f"c{2 * level}", f"c{2 * level + 1}"]
        if inner is not None:
            members, names = [*members, inner], [*names, "below"]
        inner = pa.StructArray.from_arrays(members, names=names)
    return pa.RecordBatch.from_arrays([inner], names=["top"])


def _lists(first: int, rows: int) -> pa.RecordBatch:
    """Lists of two structs, thrice, with structs between them: five levels, the cells of `rows`."""
    inner: pa.Array = pa.StructArray.from_arrays(
        [_column(first, rows, n) for n in range(_COLUMNS)],
        names=[f"c{n}" for n in range(_COLUMNS)],
    )
    for _ in range(2):
        offsets = pc.multiply(pa.arange(0, len(inner) // 2 + 1), 2).cast(pa.int32())
        listed = pa.ListArray.from_arrays(offsets, inner)
        inner = pa.StructArray.from_arrays([listed], names=["below"])
    return pa.RecordBatch.from_arrays([inner], names=["top"])


@dataclass(frozen=True, slots=True)
class _Shape:
    rows: Callable[[int, int], pa.RecordBatch]
    columns: int
    plain: str  # what it is compared with
    files: int = 10
    cells: int = 10_000_000


_SHAPES = {
    "10 columns": _Shape(_flat, _COLUMNS, ""),
    "1,000 columns": _Shape(_wide, 1_000, "10 columns"),
    "5 levels of structs": _Shape(_structs, _COLUMNS, "10 columns"),
    "5 levels with lists": _Shape(_lists, _COLUMNS, "10 columns"),
    "10 files": _Shape(_flat, _COLUMNS, "", cells=100_000_000),
    "10,000 files": _Shape(_flat, _COLUMNS, "10 files", files=10_000, cells=100_000_000),
}


class LakebedScan:
    environment = "lakebed"
    owner = "lakebed"

    def make(self, folder: Path, case: Case, data: Path) -> None:
        import lakebed

        shape, files = _SHAPES[case.table], case.sizes["files"]
        rows = case.sizes["rows"] // files
        # A row group is a file of its own when files may not be larger.
        properties = {"write.target-file-size-bytes": "1024", "write.parquet.row-group-rows": "1"}
        properties["write.parquet.row-group-rows"] = str(len(shape.rows(0, rows)))
        batches = (shape.rows(n * rows, rows) for n in range(files))
        reader = pa.RecordBatchReader.from_batches(shape.rows(0, 2 * _COLUMNS).schema, batches)
        with lakebed.open(folder, create=True) as lake:
            table = lake.create_table("bench.shape", reader.schema, properties=properties)
            table.append(reader)

    def open(self, folder: Path, case: Case, data: Path) -> Call:
        import lakebed

        lake = lakebed.open(folder)

        def run() -> int:
            batches = lake.sql("SELECT * FROM bench.shape").to_batches()
            return sum(batch.num_rows for batch in batches)

        def facts(rows: object) -> dict[str, Fact]:
            assert isinstance(rows, int)
            return {"rows": rows, "files": len(list(lake.table("bench.shape").files()))}

        return Call(run, facts)


def _cases(tiny: bool) -> Sequence[Case]:
    return [
        Case(
            name,
            name,
            {
                "rows": shape.cells // shape.columns // (1_000 if tiny else 1),
                "files": min(shape.files, 10) if tiny else shape.files,
            },
        )
        for name, shape in _SHAPES.items()
    ]


def _judge(results: Results) -> Iterator[Verdict]:
    for name, shape in _SHAPES.items():
        if name in results and shape.plain in results:
            ours, plain = results[name]["lakebed"], results[shape.plain]["lakebed"]
            times = ours.cpu_s / plain.cpu_s
            yield at_most(name, f"CPU per cell, times that of {shape.plain} <= 2", times, 2)
            files = ours.facts["files"]
            yield Verdict(name, f"files: {shape.files:,}", f"{files:,}", files == shape.files)


MEASURE = Measure(
    "shapes",
    "A full scan of wide, scattered and nested tables",
    {"lakebed": LakebedScan()},
    _cases,
    _judge,
    changes=False,
)
