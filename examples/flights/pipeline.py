"""New York's flights of 2013: from the files that airlines deliver to tables that people ask.

lakebed init lake
python deliver.py in 1            # what came up to November
lakebed -l lake run pipeline.py
python deliver.py in 2            # December, and corrections of November
lakebed -l lake run pipeline.py   # reads what is new, and makes again what follows from it
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakebed.pipelines import Pipeline, changes, current, expect, files

FLIGHTS = """year int, month int, day int, dep_time int, sched_dep_time int, dep_delay int,
    arr_time int, sched_arr_time int, arr_delay int, carrier string, flight int, tailnum string,
    origin string, dest string, air_time int, distance int, time_hour timestamp"""
WEATHER = """origin string, time_hour timestamp, temp double, wind_speed double, precip double,
    visib double"""
PLANES = """tailnum string, year int, type string, manufacturer string, model string, engines int,
    seats int, since timestamp"""
AIRPORTS = "faa string, name string, lat double, lon double, tzone string"
FLIGHT = ["time_hour", "carrier", "flight"]  # what tells flights apart

p = Pipeline("flights")


@p.step("raw.flights")
def raw_flights(
    new: DataFrame = files("in/flights-*.csv", header=True, schema=FLIGHTS, path_column="file"),
) -> DataFrame:
    """Every file once; its name says which delivery it came with."""
    return new.withColumn("delivery", F.regexp_extract("file", r"flights-(\d+)", 1).cast("int"))


@p.step("nyc.airlines", key="carrier")
def airlines(
    new: DataFrame = files("in/airlines-*.csv", header=True, schema="carrier string, name string"),
) -> DataFrame:
    return new


@p.step("nyc.airports", key="faa")
def airports(
    new: DataFrame = files("in/airports-*.csv", header=True, schema=AIRPORTS),
) -> DataFrame:
    return new


@p.step("nyc.weather", key=["origin", "time_hour"])
@expect.warn("temp between -40 and 120")
def weather(new: DataFrame = files("in/weather-*.json", schema=WEATHER)) -> DataFrame:
    return new.dropDuplicates(["origin", "time_hour"])


@p.step("nyc.planes", key="tailnum", mode="scd2", sequence_by="since")
@expect.fail("seats > 0")
def planes(new: DataFrame = files("in/planes-*.csv", header=True, schema=PLANES)) -> DataFrame:
    """Planes change: each row says from when until when it was so."""
    return new


@p.step(
    "nyc.flights",
    key=FLIGHT,
    sequence_by="delivery",
    partition_by="month",
    properties={"write.merge.mode": "copy-on-write"},  # deltalake reads no deletion vectors
)
@expect.fail(expect.not_null(*FLIGHT))
@expect.drop("distance > 0", quarantine="nyc.flights_rejected")
@expect.drop(expect.references("carrier", "nyc.airlines"), quarantine="nyc.flights_rejected")
@expect.warn(expect.references("dest", "nyc.airports", "faa"))
def flights(raw: DataFrame = changes("raw.flights")) -> DataFrame:
    """One row per flight; what a later delivery says counts, in whatever order files come."""
    return raw.drop("op", "file").withColumn("cancelled", F.isnull("dep_time"))


@p.step("gold.daily", mode="replace_partitions", partition_by="month")
def daily(
    new: DataFrame = changes("nyc.flights"), flights: DataFrame = current("nyc.flights")
) -> DataFrame:
    """By day; only the months that something changed in are made again."""
    months = new.select("month").distinct()
    return (
        flights.join(months, "month", "left_semi")
        .groupBy("month", "day")
        .agg(
            F.count("*").alias("flights"),
            F.count_if("cancelled").alias("cancelled"),
            F.sum("arr_delay").alias("minutes_late"),
            F.sum("distance").alias("miles"),
        )
    )


@p.step("gold.carriers", mode="replace")
@expect.fail(expect.unique("carrier"))
def carriers(
    flights: DataFrame = current("nyc.flights"), airlines: DataFrame = current("nyc.airlines")
) -> DataFrame:
    counted = flights.groupBy("carrier").agg(
        F.count("*").alias("flights"),
        F.count_if("cancelled").alias("cancelled"),
        F.round(F.avg("arr_delay"), 2).alias("average_delay"),
    )
    return counted.join(airlines, "carrier").withColumnRenamed("name", "airline")


@p.step("gold.rain", mode="replace")
def rain(
    flights: DataFrame = current("nyc.flights"), weather: DataFrame = current("nyc.weather")
) -> DataFrame:
    """What rain does to departures."""
    joined = flights.join(weather, ["origin", "time_hour"])
    return joined.groupBy((F.col("precip") > 0).alias("rain")).agg(
        F.count("*").alias("flights"), F.round(F.avg("dep_delay"), 2).alias("average_delay")
    )


@p.step("gold.seats", mode="replace")
def seats(
    flights: DataFrame = current("nyc.flights"), planes: DataFrame = current("nyc.planes")
) -> DataFrame:
    """Seats that were flown, by month, with each plane as it was on the day of the flight."""
    flown = flights.where("not cancelled").alias("f")
    then = planes.alias("p")
    on = F.expr(
        "f.tailnum = p.tailnum and f.time_hour >= p.valid_from"
        " and (p.valid_to is null or f.time_hour < p.valid_to)"
    )
    return (
        flown.join(then, on)
        .groupBy("f.month")
        .agg(F.count("*").alias("flights"), F.sum("p.seats").alias("seats"))
    )
