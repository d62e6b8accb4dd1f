"""A stream of micro-batches into a table: what each takes, and whether that stays."""

import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import spark
from benchmarks.measure import Call, Case, Fact, Measure, Results, Verdict, alike, at_most

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

_PART_TO_WARM_UP = 20
_PAUSE_S = 0.5  # Spark remembers 100 batches


@dataclass(slots=True)
class Sink:
    form: str
    owner: str
    environment: str = "lakebed"

    def make(self, folder: Path, case: Case, data: Path) -> None:
        if self.form == "lakebed":
            spark.open_lake(folder, create=True).close()

    def open(self, folder: Path, case: Case, data: Path) -> Call:
        sizes = case.sizes
        _taken(
            self._start(folder, "warm", sizes["rows"], 0), 1 + sizes["batches"] // _PART_TO_WARM_UP
        )

        def run() -> object:
            started = self._start(folder, "stream", sizes["rows"], sizes["milliseconds"])
            return _taken(started, sizes["batches"])

        def facts(found: object) -> dict[str, Fact]:
            assert isinstance(found, list)
            return _facts(found[: sizes["batches"]], sizes["rows"])

        return Call(run, facts)

    def _start(self, folder: Path, name: str, rows: int, milliseconds: int) -> "StreamingQuery":
        frame = spark.session().readStream.format("rate-micro-batch")
        made = frame.option("rowsPerBatch", rows).option("numPartitions", 1).load().writeStream
        made = made.format(self.form).outputMode("append")
        made = made.trigger(processingTime=f"{milliseconds} milliseconds")
        made = made.option("checkpointLocation", str(folder / f"{name}-checkpoint"))
        if self.form == "lakebed":
            return made.option("lake", str(folder / "lake")).start(f"bench.{name}")
        if self.form == "iceberg":
            table = f"{spark.iceberg_catalog(folder)}.bench.{name}"
            columns = "timestamp TIMESTAMP, value BIGINT"
            spark.session().sql(f"CREATE TABLE {table} ({columns}) USING iceberg")
            return made.toTable(table)
        return made.start(str(folder / name))


def _taken(query: "StreamingQuery", batches: int) -> list[dict[str, int]]:
    """What each batch took in ms, by Spark's own account; the query ends after the last one."""
    seen: dict[int, dict[str, int]] = {}
    while len(seen) < batches and query.isActive:
        for progress in query.recentProgress:
            if progress["numInputRows"]:
                seen.setdefault(int(progress["batchId"]), dict(progress["durationMs"]))
        time.sleep(_PAUSE_S)
    failure = query.exception()
    if failure is not None:
        raise failure
    query.stop()
    return [seen[number] for number in sorted(seen)]


def _facts(durations: Sequence[dict[str, int]], rows: int) -> dict[str, Fact]:
    took = [each["triggerExecution"] for each in durations]
    some = min(100, max(1, len(took) // 2))
    first, last = took[:some], took[-some:]
    ordered = sorted(took)
    return {
        "batches": len(took),
        "median ms": statistics.median(took),
        "p95 ms": ordered[int(len(ordered) * 0.95) - 1] if len(ordered) > 1 else ordered[0],
        "rows/s": round(rows * len(took) / (sum(took) / 1000)),
        f"median ms, first {some}": statistics.median(first),
        f"median ms, last {some}": statistics.median(last),
        "last/first": statistics.median(last) / statistics.median(first),
    }


def _cases(tiny: bool) -> Sequence[Case]:
    batches, rows = (4, 10) if tiny else (500, 1_000)
    return [
        Case("as fast as possible", "stream", _sizes(batches, rows, 0)),
        Case(
            "every second", "stream", _sizes(batches, rows, 100 if tiny else 1_000), "", ["lakebed"]
        ),
    ]


def _sizes(batches: int, rows: int, milliseconds: int) -> dict[str, int]:
    return {"batches": batches, "rows": rows, "milliseconds": milliseconds}


def _judge(results: Results) -> Iterator[Verdict]:
    for name, systems in results.items():
        for system, figures in systems.items():
            got = {
                key: round(v, 2) for key, v in figures.facts.items() if isinstance(v, int | float)
            }
            stated = ", ".join(f"{key} {value:,}" for key, value in got.items() if key != "batches")
            yield alike(
                name, f"{system}: all batches come", f"{got['batches']}", got["batches"] > 0
            )
            yield Verdict(name, f"{system}: stated", stated, met=True)
        flat = systems["lakebed"].number("last/first")
        yield at_most(name, "lakebed: last batches, times the first <= 1.3", flat, 1.3)


MEASURE = Measure(
    "spark-stream",
    "A stream of 1,000 rows per batch",
    {
        "lakebed": Sink("lakebed", "lakebed"),
        "parquet": Sink("parquet", "parquet"),
        "iceberg": Sink("iceberg", "iceberg"),
        "delta": Sink("delta", "delta"),
    },
    _cases,
    _judge,
    changes=True,
    warm=0,
    most=1,
)
