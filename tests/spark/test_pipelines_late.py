"""Rows that come late and in any order end where they would have, had they come in order."""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from lakebed.api.lake import Lake
from lakebed.model.errors import PipelineInvalid, StepFailed
from lakebed.pipelines import Pipeline, changes, current, expect
from tests.spark.shop import rows

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
KEYS, RUNS = 40, 3
Event = dict[str, Any]


def events(seed: int) -> list[Event]:
    """Of every key a few, each at its own moment; few cities, so that they repeat."""
    chance = random.Random(seed)
    found = []
    for key in range(KEYS):
        for moment in chance.sample(range(1, 30), chance.randint(1, 6)):
            op = chance.choice(["insert", "update", "delete"])
            city = None if op == "delete" else chance.choice(["Oslo", "Rome"])
            since = BEGIN + timedelta(days=moment)
            found.append({"id": key, "city": city, "since": since, "op": op})
    chance.shuffle(found)
    return found


def deliveries(lake: Lake, told: list[Event]) -> Iterator[list[Event]]:
    """Appends a part of the events after the other; what has been told by then."""
    schema = "id long, city string, since timestamp, op string"
    log = lake.create_table("a.log", schema)
    size = -(-len(told) // RUNS)
    for start in range(0, len(told), size):
        log.append(told[start : start + size])
        yield told[: start + size]


def newest(told: list[Event]) -> list[tuple[Any, ...]]:
    last: dict[int, Event] = {}
    for event in sorted(told, key=lambda e: e["since"]):
        last[event["id"]] = event
    return sorted((e["id"], e["city"]) for e in last.values() if e["op"] != "delete")


def history(told: list[Event]) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    for key in range(KEYS):
        mine = sorted((e for e in told if e["id"] == key), key=lambda e: e["since"])
        said: list[tuple[datetime, str | None]] = []
        for event in mine:
            city = None if event["op"] == "delete" else event["city"]
            if city != (said[-1][1] if said else None):
                said.append((event["since"], city))
        ends = [*(moment for moment, _ in said[1:]), None][: len(said)]
        found += [
            (key, city, moment, end, end is None)
            for (moment, city), end in zip(said, ends, strict=True)
            if city is not None
        ]
    return sorted(found, key=str)


def test_rows_that_come_late_change_neither_what_was_deleted_nor_history(
    lake: Lake, spark: SparkSession
) -> None:
    p = Pipeline("p")

    @p.step("b.people", key="id", sequence_by="since", op="op")
    def people(new: DataFrame = changes("a.log", op="what")) -> DataFrame:
        return new.drop("what")

    @p.step("b.history", key="id", mode="scd2", sequence_by="since", op="op")
    def chains(new: DataFrame = changes("a.log", op="what")) -> DataFrame:
        return new.drop("what")

    told = events(1)
    for known in deliveries(lake, told):
        p.run(lake, session=spark)
        assert_told(lake, known)
    beside = {t for t in lake.tables() if t.startswith("b.")} - {"b.people", "b.history"}
    assert beside == {"b.people_deleted", "b.history_events"}

    p.run(lake, session=spark, full_refresh=["b.people", "b.history"])
    assert_told(lake, told)
    assert lake.table("b.people_deleted").row_count == KEYS - len(newest(told))
    assert lake.check().clean


def assert_told(lake: Lake, told: list[Event]) -> None:
    """A key that was deleted is not brought back, and history is as if told in order."""
    assert rows(lake, "b.people", "id", "city") == newest(told)
    shown = ["id", "city", "valid_from", "valid_to", "is_current"]
    found = lake.table("b.history").scan(columns=shown).to_arrow().to_pylist()
    assert sorted((tuple(r.values()) for r in found), key=str) == history(told)


def test_a_table_of_the_same_name_is_not_taken_for_that_of_deletions(
    lake: Lake, spark: SparkSession
) -> None:
    lake.create_table("b.people_deleted", "name string")
    p = Pipeline("p")

    @p.step("b.people", key="id", sequence_by="since", op="op")
    def people(new: DataFrame = changes("a.log", op="what")) -> DataFrame:
        return new.drop("what")

    next(deliveries(lake, events(3)))

    with pytest.raises(StepFailed, match=r"b\.people_deleted is not the one that remembers"):
        p.run(lake, session=spark)
    assert not lake.has_table("b.people")


def test_a_key_that_vanishes_from_a_whole_source_ends_where_that_is_asked_for(
    lake: Lake, spark: SparkSession
) -> None:
    people = lake.create_table("a.people", "id long not null, city string", primary_key=["id"])
    people.append(pa.table({"id": [1, 2, 3], "city": ["Oslo", "Rome", "bad"]}))
    p = Pipeline("p")

    @p.step("b.closed", key="id", mode="scd2", vanished="close")
    @expect.drop("city <> 'bad' or id <> 2")
    def closed(people: DataFrame = current("a.people")) -> DataFrame:
        return people

    @p.step("b.kept", key="id", mode="scd2")
    def kept(people: DataFrame = current("a.people")) -> DataFrame:
        return people

    first = p.run(lake, session=spark)
    people.delete("id = 1")
    people.update({"city": "'bad'"}, "id = 2")
    second = p.run(lake, session=spark)

    told = rows(lake, "b.closed", "id", "city", "is_current")
    assert told == [(1, "Oslo", False), (2, "Rome", True), (3, "bad", True)], (
        "a row that was dropped has not vanished"
    )
    (ended,) = lake.table("b.closed").scan(where="id = 1").to_arrow().to_pylist()
    assert first.started_ms < second.started_ms == int(ended["valid_to"].timestamp() * 1000)
    assert (1, "Oslo", True) in rows(lake, "b.kept", "id", "city", "is_current")
    people.delete("id > 0")
    p.run(lake, session=spark)
    assert {row[0] for row in rows(lake, "b.closed", "is_current")} == {False}, "none is left"


def test_what_vanished_is_known_only_of_a_whole_source() -> None:
    p = Pipeline("p")

    with pytest.raises(PipelineInvalid, match=r"needs all rows in every run.*changes:a\.people"):

        @p.step("b.closed", key="id", mode="scd2", vanished="close")
        def closed(people: DataFrame = changes("a.people")) -> DataFrame:
            return people

    with pytest.raises(PipelineInvalid, match="is for scd2, not merge"):

        @p.step("b.merged", key="id", vanished="close")
        def merged(people: DataFrame = current("a.people")) -> DataFrame:
            return people

    with pytest.raises(PipelineInvalid, match="there is no vanished='drop'"):

        @p.step("b.dropped", key="id", mode="scd2", vanished="drop")
        def dropped(people: DataFrame = current("a.people")) -> DataFrame:
            return people
