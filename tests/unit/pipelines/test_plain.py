"""Functions that only build a query are told from those that may do something."""

import math
import time
from datetime import timedelta

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.functions import count

from lakebed.pipelines.plain import is_plain

KEY = ["id", "day"]
LIMIT = 10
seen: list[object] = []


def cleaned(frame: DataFrame) -> DataFrame:
    return frame.dropna(subset=KEY)


def noisy(frame: DataFrame) -> DataFrame:
    print(frame)  # noqa: T201 - what is tested
    return frame


def keeps(found: list[object]) -> None:
    found.append(1)


def selects(a: DataFrame) -> DataFrame:
    """A docstring is no harm."""
    renamed = {name: name.upper() for name in a.columns}
    kept = a.where(F.col("x") > LIMIT).transform(cleaned)
    if len(renamed) > 1:
        kept = kept.dropDuplicates(KEY)
    return kept.select(*KEY, F.first("x"), math.pi * F.col("x"))


def groups(a: DataFrame) -> DataFrame:
    return cleaned(a).groupBy(KEY).agg(count("*"), F.count("id"), F.lit(timedelta(1)))


def counts_groups(a: DataFrame) -> DataFrame:
    return a.groupBy("day").count()


def raises(a: DataFrame) -> DataFrame:
    raise ValueError("no")


def counts(a: DataFrame) -> DataFrame:
    return a.limit(a.count())


def turns(a: DataFrame) -> DataFrame:
    return a.groupBy("day").pivot("id").agg(F.max("x"))


def remembers(a: DataFrame) -> DataFrame:
    seen.append(a)
    return a


def hands_on(a: DataFrame) -> DataFrame:
    keeps(seen)
    return a


def renames_what_it_changes(a: DataFrame) -> DataFrame:
    mine = seen
    mine.append(a)
    return a


def calls_noise(a: DataFrame) -> DataFrame:
    return a.transform(noisy)


def waits(a: DataFrame) -> DataFrame:
    time.sleep(0)
    return a


def asks_the_session(a: DataFrame) -> DataFrame:
    return SparkSession.getActiveSession().table("x")  # type: ignore[union-attr]


def changes_a_global(a: DataFrame) -> DataFrame:
    global LIMIT  # noqa: PLW0603 - what is tested
    LIMIT = 10
    return a


def writes(a: DataFrame) -> DataFrame:
    a.write.parquet("x")
    return a


def reaches_in(a: DataFrame) -> DataFrame:
    return a._jdf  # type: ignore[no-any-return]


@pytest.mark.parametrize("function", [selects, groups, counts_groups, raises, cleaned])
def test_a_function_that_builds_a_query_is_plain(function: object) -> None:
    assert is_plain(function)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "function",
    [
        counts,
        turns,
        remembers,
        hands_on,
        renames_what_it_changes,
        noisy,
        calls_noise,
        waits,
        asks_the_session,
        changes_a_global,
        writes,
        reaches_in,
        lambda a: a,
        print,
    ],
)
def test_a_function_that_may_do_something_is_not_plain(function: object) -> None:
    assert not is_plain(function)  # type: ignore[arg-type]
