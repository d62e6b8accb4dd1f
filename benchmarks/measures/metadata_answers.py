"""count(*), min and max of a whole table: from what is known of its files, whatever its size."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.data import numbers
from benchmarks.measure import Call, Case, Fact, Measure, Results, Verdict, at_most

_QUERIES = {
    "count(*)": "SELECT count(*) FROM bench.numbers",
    "min, max": "SELECT min(id), max(id), min(value) FROM bench.numbers",
}
_SIZES = {"small": 1_000, "large": 30_000_000}


class LakebedAnswer:
    environment = "lakebed"
    owner = "lakebed"

    def make(self, folder: Path, case: Case, data: Path) -> None:
        import lakebed

        rows = numbers(case.sizes["rows"])
        with lakebed.open(folder, create=True) as lake:
            lake.create_table("bench.numbers", rows.schema).append(rows)

    def open(self, folder: Path, case: Case, data: Path) -> Call:
        import lakebed

        lake = lakebed.open(folder)
        lake.sql(case.text).to_arrow()  # what is loaded when it is first needed

        def facts(answer: object) -> dict[str, Fact]:
            return {"answer": str(answer)}

        return Call(lambda: lake.sql(case.text).to_pylist(), facts)


def _cases(tiny: bool) -> Sequence[Case]:
    return [
        Case(f"{what}, {rows:,} rows", size, {"rows": rows}, text)
        for what, text in _QUERIES.items()
        for size, rows in _SIZES.items()
        if not (tiny and size == "large")
    ]


def _judge(results: Results) -> Iterator[Verdict]:
    for what in _QUERIES:
        names = [f"{what}, {rows:,} rows" for rows in _SIZES.values()]
        if not all(name in results for name in names):
            continue
        small, large = (results[name]["lakebed"].cpu_s for name in names)
        # Short times differ by a third from run to run.
        yield at_most(names[1], "CPU, times the small table's <= 1.5", large / small, 1.5)


MEASURE = Measure(
    "metadata-answers",
    "COUNT(*), MIN and MAX without a filter",
    {"lakebed": LakebedAnswer()},
    _cases,
    _judge,
    changes=False,
)
