"""count(*), min and max of a whole table: from what is known of its files, whatever its size."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.data import numbers
from benchmarks.measure import Call, Case, Fact, Measure, Results, Verdict, at_most

_QUERIES = {
    "count(*)": "SELECT count(*) FROM bench.numbers",
    "min, max": "SELECT min(id), max(id), min(value) FROM bench.numbers",
}
_SIZES = {
    "1,000 rows": (1_000, 1),
    "30,000,000 rows": (30_000_000, 0),
    "1,000 files": (1_000_000, 1_000),
}
_SMALL = "1,000 rows"


class LakebedAnswer:
    environment = "lakebed"
    owner = "lakebed"

    def make(self, folder: Path, case: Case, data: Path) -> None:
        import lakebed

        rows = numbers(case.sizes["rows"])
        with lakebed.open(folder, create=True) as lake:
            properties = {}
            if case.sizes["files"] > 1:  # a row group is a file when files may not be larger
                group = case.sizes["rows"] // case.sizes["files"]
                properties = {"write.target-file-size-bytes": "1024"}
                properties["write.parquet.row-group-rows"] = str(group)
            table = lake.create_table("bench.numbers", rows.schema, properties=properties)
            table.append(rows)

    def open(self, folder: Path, case: Case, data: Path) -> Call:
        import lakebed

        lake = lakebed.open(folder)
        lake.sql(case.text).to_arrow()  # what is loaded when it is first needed

        def facts(answer: object) -> dict[str, Fact]:
            return {"answer": str(answer)}

        return Call(lambda: lake.sql(case.text).to_pylist(), facts)


def _cases(tiny: bool) -> Sequence[Case]:
    return [
        Case(f"{what}, {size}", size, {"rows": rows, "files": files}, text)
        for what, text in _QUERIES.items()
        for size, (rows, files) in _SIZES.items()
        if not tiny or size == _SMALL
    ]


def _judge(results: Results) -> Iterator[Verdict]:
    for what in _QUERIES:
        small = results.get(f"{what}, {_SMALL}")
        for name in (f"{what}, {size}" for size in _SIZES if size != _SMALL):
            if small is not None and name in results:
                times = results[name]["lakebed"].cpu_s / small["lakebed"].cpu_s
                # Short times differ by a third from run to run.
                yield at_most(name, "CPU, times the small table's <= 1.5", times, 1.5)


MEASURE = Measure(
    "metadata-answers",
    "COUNT(*), MIN and MAX without a filter",
    {"lakebed": LakebedAnswer()},
    _cases,
    _judge,
    changes=False,
)
