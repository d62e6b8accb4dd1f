"""How long readers of both formats wait for commits that are published in the background."""

import math
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.measure import Call, Case, Fact, Measure, Results, Verdict, alike, at_most
from benchmarks.measures.appending import COLUMNS, row

_MOST_S = 5


class LakebedLag:
    environment = "lakebed"
    owner = "lakebed"

    def make(self, folder: Path, case: Case, data: Path) -> None:
        import lakebed

        with lakebed.open(folder, create=True) as lake:
            lake.create_table("bench.events", COLUMNS, properties={"publish.mode": "background"})

    def open(self, folder: Path, case: Case, data: Path) -> Call:
        import lakebed

        lake = lakebed.open(folder)
        table = lake.table("bench.events")

        def run() -> int:
            end = time.monotonic() + case.sizes["seconds"]
            n = 0
            while time.monotonic() < end:
                table.append([row(n)])
                n += 1
            lake.publish()
            return n

        def facts(commits: object) -> dict[str, Fact]:
            lags = lake.sql(
                "SELECT lag_s FROM bench.events$publications WHERE kind IN (?, ?) ORDER BY 1",
                ["commit", "metadata"],
            ).to_arrow()["lag_s"]
            p95 = lags[math.ceil(len(lags) * 0.95) - 1].as_py()
            rows = table.scan(columns=["id"]).to_arrow().num_rows
            assert isinstance(commits, int)
            waits = len(lake.status().lags)
            return {"commits": commits, "rows": rows, "p95_s": p95, "waits": waits}

        return Call(run, facts)


def _cases(tiny: bool) -> Sequence[Case]:
    seconds = 1 if tiny else 60
    return [Case(f"{seconds} s", "events", {"seconds": seconds})]


def _judge(results: Results) -> Iterator[Verdict]:
    for name, systems in results.items():
        ours = systems["lakebed"]
        complete = ours.facts["rows"] == ours.facts["commits"] and ours.facts["waits"] == 0
        commits = f"{ours.number('commits'):,.0f} commits"
        yield alike(name, "every row is there, every version published", commits, complete)
        demand = f"95 of 100 publications follow within {_MOST_S} s"
        yield at_most(name, demand, ours.number("p95_s"), _MOST_S, " s")


MEASURE = Measure(
    "append-lag",
    "1-row appends published in the background, as fast as they come",
    {"lakebed": LakebedLag()},
    _cases,
    _judge,
    changes=True,
    most=1,
)
