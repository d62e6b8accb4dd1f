"""Random histories over every operation, read back by everybody at sampled versions.

The model is plain Python. A reader shows its rows, or refuses a feature that docs/readers.md lists;
it never shows other rows. A failure prints steps and seed: pass them to `told` to see it again.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

import lakebed
from tests.examples import examples
from tests.interop.history_readers import (
    Lineage,
    asked,
    check_branches,
    check_duckdb,
    check_ours,
    check_stock,
    row_ids,
    shown,
)
from tests.interop.history_steps import LINES, MAPPED, NAMES, ROWS, TABLE, WIDENED, Story, begin
from tests.interop.plain import plain_rows
from tests.interop.spark import Format, spark_table

pytestmark = pytest.mark.filterwarnings("ignore")  # the readers' own, about v3 and planners
PLAIN = (*ROWS, *ROWS, *LINES, *TABLE)
KINDS = {
    "plain": PLAIN,
    "mapped": (*PLAIN, *NAMES[MAPPED], *NAMES[MAPPED]),
    "everything": (*PLAIN, *NAMES[MAPPED], *NAMES[WIDENED], *NAMES[WIDENED]),
}
SPARK: tuple[Format, ...] = ("delta", "iceberg")
SEEDS = st.integers(0, 2**32 - 1)
bounded = settings(deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)


def histories(kind: str, most: int) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(KINDS[kind]), min_size=4, max_size=most)


@contextmanager
def told(folder: Path, steps: list[str], seed: int) -> Iterator[Story]:
    """The lake after the steps; rows keep their ids all along, and the check is clean."""
    with lakebed.open(folder, create=True) as lake:
        story, lineage = begin(lake, seed), Lineage()
        story.run(["append"])
        for step in steps:
            story.run([step])
            lineage.check(story, step)
        assert lake.publish().lags == ()
        yield story
        # A publication under way while its format is turned off leaves a file: a note.
        assert lake.check().findings == []


@pytest.mark.parametrize("kind", KINDS)
@settings(bounded, max_examples=7)
@given(data=st.data(), seed=SEEDS)
def test_everybody_reads_what_the_history_tells(
    tmp_path_factory: pytest.TempPathFactory, kind: str, data: st.DataObject, seed: int
) -> None:
    steps = data.draw(histories(kind, 14))
    check(tmp_path_factory.mktemp("history"), steps, seed)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@settings(bounded, max_examples=examples(14, 40))
@given(data=st.data(), seed=SEEDS)
def test_everybody_reads_what_long_histories_tell(
    tmp_path_factory: pytest.TempPathFactory, kind: str, data: st.DataObject, seed: int
) -> None:
    steps = data.draw(histories(kind, 40))
    check(tmp_path_factory.mktemp("history"), steps, seed)


def check(folder: Path, steps: list[str], seed: int) -> None:
    with told(folder, steps, seed) as story:
        check_ours(story, 3)
        questions = asked(story, 2)
        for reader, versions in check_stock(questions).items():
            event(f"{reader} read {versions}")
        check_duckdb(questions)
        check_branches(story)


# Seed and steps: every kind of change of rows and columns is there.
FIXED = {
    1: (*("append", "update", "branch", "merge", "add", "append", "forward", "delete"), *ROWS),
    2: (*("append", "widen", "update", "rename", "delete", "swap"), *ROWS, "member", "restore"),
}


@pytest.mark.parametrize("seed", FIXED)
def test_spark_reads_what_the_history_tells(tmp_path: Path, seed: int) -> None:
    with told(tmp_path / "lake", list(FIXED[seed]), seed) as story:
        wanted = shown(story.model.main.head)
        for format_ in SPARK:
            assert plain_rows(spark_table(format_, story.table.location)) == wanted, format_
        rows = spark_table("iceberg", story.table.location, columns=["id", "_row_id"]).to_pylist()
        assert {row["id"]: row["_row_id"] for row in rows} == row_ids(story.table)
