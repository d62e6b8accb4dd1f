"""What a run of a pipeline costs beside its rows: ten steps, one after the other."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import spark
from benchmarks.measure import Call, Case, Fact, Measure, Results, Verdict, alike, at_most

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakebed.pipelines import Pipeline

_FIRST = "steps.t0"


class LakebedRun:
    environment = "lakebed"
    owner = "lakebed"

    def make(self, folder: Path, case: Case, data: Path) -> None:
        with spark.open_lake(folder, create=True) as lake:
            lake.create_table(_FIRST, "id long not null", primary_key=["id"])
            lake.table(_FIRST).append([{"id": 0}])
            _pipeline(case.sizes["steps"]).run(lake, session=spark.session())

    def open(self, folder: Path, case: Case, data: Path) -> Call:
        lake, session = spark.open_lake(folder), spark.session()
        pipeline = _pipeline(case.sizes["steps"])
        new = [{"id": n} for n in range(1, case.sizes["new"] + 1)]
        if new:
            lake.table(_FIRST).append(new)

        def facts(_: object) -> dict[str, Fact]:
            rows = lake.table(f"steps.t{case.sizes['steps']}").row_count
            lake.close()
            return {"rows": rows, "expected": 1 + case.sizes["new"]}

        return Call(lambda: pipeline.run(lake, session=session), facts)


def _pipeline(steps: int) -> "Pipeline":
    from lakebed.pipelines import Pipeline, changes

    made = Pipeline("bench")
    for number in range(1, steps + 1):

        def step(rows: "DataFrame" = changes(f"steps.t{number - 1}")) -> "DataFrame":
            return rows.select("id")

        made.step(f"steps.t{number}", key="id", name=f"step{number}")(step)
    return made


def _cases(tiny: bool) -> Sequence[Case]:
    steps = 2 if tiny else 10
    return [
        Case("nothing new", "steps", {"steps": steps, "new": 0}),
        Case("one new row", "steps", {"steps": steps, "new": 1}),
    ]


def _judge(results: Results) -> Iterator[Verdict]:
    for name, systems in results.items():
        ours = systems["lakebed"]
        same = ours.facts["rows"] == ours.facts["expected"]
        yield alike(name, "the rows have come to the last table", f"{ours.facts['rows']}", same)
        if name == "nothing new":
            yield at_most(name, "wall < 1 s", ours.wall_s, 1.0, unit=" s")


MEASURE = Measure(
    "spark-pipeline",
    "A run of ten steps on a warm Spark session",
    {"lakebed": LakebedRun()},
    _cases,
    _judge,
    changes=True,
    warm=2,
)
