"""Rows written one by one through the buffered writer, with a commit each second."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from benchmarks.measure import Call, Case, Fact, Measure, Results, Verdict, alike, at_least, at_most

if TYPE_CHECKING:
    import lakebed

_SECONDS = 1.0
_WHEN = datetime(2026, 1, 1, tzinfo=UTC)


class LakebedWriter:
    environment = "lakebed"
    owner = "lakebed"

    def make(self, folder: Path, case: Case, data: Path) -> None:
        import lakebed

        columns = "id long not null, at timestamp, name string, value double, ok boolean"
        with lakebed.open(folder, create=True) as lake:
            lake.create_table("bench.events", columns)

    def open(self, folder: Path, case: Case, data: Path) -> Call:
        import lakebed

        table = lakebed.open(folder).table("bench.events")
        return Call(lambda: _write(table, case), lambda _: _facts(table, case.sizes["rows"]))


def _write(table: "lakebed.Table", case: Case) -> None:
    rows, threads = case.sizes["rows"], case.sizes["threads"]
    with (
        table.writer(max_seconds=_SECONDS, max_rows=rows + 1) as writer,
        ThreadPoolExecutor(threads) as pool,
    ):

        def work(first: int) -> None:
            for n in range(first, rows, threads):
                row = {"id": n, "at": _WHEN, "name": f"event {n}", "value": n / 2, "ok": True}
                writer.write(row)

        list(pool.map(work, range(threads)))


def _facts(table: "lakebed.Table", written: int) -> dict[str, Fact]:
    ids = table.scan(columns=["id"]).to_arrow().column(0)
    commits = [c.time_ms / 1000 for c in table.history() if c.operation == "append"]
    gaps = [later - earlier for later, earlier in pairwise(commits)]
    distinct = pc.count_distinct(ids).as_py()
    return {
        "rows": len(ids),
        "distinct": distinct,
        "written": written,
        "gap_s": max(gaps, default=0),
    }


def _cases(tiny: bool) -> Sequence[Case]:
    rows = 400 if tiny else 300_000
    return [
        Case(f"{rows:,} rows, {threads} thread{'s' if threads > 1 else ''}", "events", sizes)
        for threads in (1, 8)
        for sizes in [{"rows": rows, "threads": threads}]
    ]


def _judge(results: Results) -> Iterator[Verdict]:
    for name, systems in results.items():
        ours = systems["lakebed"]
        rows = ours.number("rows")
        once = ours.facts["distinct"] == rows == ours.facts["written"]
        yield alike(name, "every row is there once", f"{rows:,.0f}", once)
        yield at_least(name, "rows a second: >= 20,000", rows / ours.wall_s, 20_000, "")
        yield at_most(name, "seconds between commits: <= 1.5", ours.number("gap_s"), 1.5, " s")


MEASURE = Measure(
    "buffered-writes",
    "1-row writes through the buffered writer",
    {"lakebed": LakebedWriter()},
    _cases,
    _judge,
    changes=True,
)
