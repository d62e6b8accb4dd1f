"""Runs of pipelines in the rows: one at a time, ended with their commit, remembered afterwards."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import lakebed
from lakebed.api.lake import Lake
from lakebed.model.errors import PipelineBusy, RunLost, RunNotFound, TableNotFound
from lakebed.model.ids import Version
from lakebed.model.runs import (
    Cursor,
    Derivation,
    ExpectationReport,
    Failure,
    FileMark,
    InputReport,
    RunAttachment,
    RunReport,
    StepReport,
)

ROWS = [{"id": 1}, {"id": 2}]
REPORT = RunReport(
    {"day": "2026-11-01"},
    (
        StepReport(
            "b.out",
            "done",
            "incremental",
            12,
            2,
            inputs=(InputReport("a.in", "changes", None, 0),),
            expectations=(ExpectationReport("id > 0", "warn", True),),
        ),
    ),
)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lake]:
    if request.param == "sqlite":
        uri, warehouse = str(tmp_path / "lake"), None
    else:
        uri, warehouse = request.getfixturevalue("postgres_url"), str(tmp_path / "warehouse")
    with lakebed.open(uri, warehouse=warehouse, create=True) as opened:
        opened.create_table("a.in", ROWS)
        yield opened


def attachment(run_id: str, **given: object) -> RunAttachment:
    return RunAttachment(run_id, "p", REPORT, **given)  # type: ignore[arg-type]


def write_output(lake: Lake, table: str = "b.out") -> str:
    """A run that copies a table; its id."""
    with lake.runs.begin("p", parameters={"day": "2026-11-01"}) as run:
        (pinned,) = run.look(["a.in", "b.out"]).values()
        run.transaction.create_table(table, ROWS)
        run.finish(
            attachment(
                run.id,
                cursors=(
                    Cursor("b.out", "changes:a.in", pinned.id, pinned.version),
                    Cursor("c.next", "current:b.out", table="b.out"),
                ),
                marks=(FileMark("b.out", "files:x", "x/1.csv", 10, 20),),
                derivations=(
                    Derivation("b.out", "a.in", pinned.id, None, pinned.version, {"id": ("id",)}),
                ),
            ),
            changed=True,
        )
        return run.id


def test_a_run_ends_with_its_commit_and_says_what_it_did(lake: Lake) -> None:
    run_id = write_output(lake)

    (run,) = lake.runs.list()
    assert (run.id, run.pipeline, run.status) == (run_id, "p", "succeeded")
    assert run.report.parameters == {"day": "2026-11-01"}
    assert run.report.written == {"b.out": 0}
    assert run.report.steps == REPORT.steps
    assert run.finished_ms is not None
    assert run.finished_ms >= run.started_ms
    assert lake.runs.get(run_id[:6]) == run


def test_cursors_stand_at_what_was_read_and_at_what_the_commit_made(lake: Lake) -> None:
    write_output(lake)

    with lake.runs.begin("p") as run:
        read = run.cursor("b.out", "changes:a.in")
        made = run.cursor("c.next", "current:b.out")
        marks = run.marks("b.out", "files:x", ["x/1.csv", "x/2.csv"])

    assert read is not None
    assert read.version == 0
    assert made is not None
    assert made.version == 0
    assert made.table_id is not None
    assert list(marks) == ["x/1.csv"]


def test_a_run_that_changes_nothing_moves_its_cursors_alone(lake: Lake) -> None:
    with lake.runs.begin("p") as run:
        run.look(["a.in"])
        run.finish(attachment(run.id, cursors=(Cursor("s", "@code", mark="x"),)), changed=False)

    with lake.runs.begin("p") as later:
        kept = later.cursor("s", "@code")
    assert kept is not None
    assert kept.mark == "x"
    assert [r.status for r in lake.runs.list()][-1] == "unchanged"
    assert lake.tables() == ["a.in"]


def test_a_failed_run_leaves_its_record_and_no_table(lake: Lake) -> None:
    failure = Failure("STEP_FAILED", "no", "do", "b.out", "sales.py:3")
    with lake.runs.begin("p") as run:
        run.transaction.create_table("b.out", ROWS)
        run.fail("failed", RunReport(failure=failure))

    (record,) = lake.runs.list("p")
    assert (record.status, record.report.failure) == ("failed", failure)
    assert not lake.has_table("b.out")
    assert lake.check().clean


def test_what_was_committed_is_kept_when_the_run_fails_afterwards(lake: Lake) -> None:
    with lake.runs.begin("p") as run:
        run.transaction.create_table("b.out", ROWS)
        run.finish(attachment(run.id), changed=True)
        run.fail("interrupted", REPORT)  # while it is published, say

    assert lake.runs.list()[0].status == "succeeded"
    assert lake.table("b.out").to_arrow().num_rows == 2
    assert lake.check().clean


def test_two_runs_of_one_pipeline_do_not_go_together(lake: Lake) -> None:
    with lake.runs.begin("p") as first, pytest.raises(PipelineBusy, match=first.id):
        lake.runs.begin("p")
    with lake.runs.begin("q"), lake.runs.begin("r"):
        pass


def test_a_second_run_waits_when_it_is_told_to(lake: Lake) -> None:
    first = lake.runs.begin("p")
    ending = threading.Timer(0.3, first.fail, ["failed", REPORT])
    ending.start()

    with lake.runs.begin("p", wait_s=30) as second:
        assert lake.runs.get(first.id).status == "failed"
        assert second.run.status == "running"
    ending.join()
    first.__exit__(None, None, None)


def test_a_run_that_was_given_up_cannot_commit(lake: Lake) -> None:
    with lake.runs.begin("p") as run:
        run.transaction.create_table("b.out", ROWS)
        assert lake._parts.runs.end(run.id, "lost", REPORT)

        with pytest.raises(RunLost):
            run.finish(attachment(run.id), changed=True)

    assert not lake.has_table("b.out")


def test_a_run_whose_process_is_gone_is_given_up_at_once(lake: Lake, tmp_path: Path) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    with lake.runs.begin("p") as run:
        place = f"{run._parts.storage.location('')}/.lakebed/scratch/{run.id}/1"
        Path(place).mkdir(parents=True)
        with lake._parts.runs._store.write() as tx:
            node = tx.one("SELECT owner FROM runs")
            assert node is not None
            owner = f"{node[0].rpartition(':')[0]}:{dead.pid}"
            tx.run("UPDATE runs SET owner = ?", (owner,))

        with lake.runs.begin("p"):
            assert lake.runs.get(run.id).status == "lost"
            assert not Path(place).exists(), "what it left behind goes"


def test_lineage_is_followed_up_and_down(lake: Lake) -> None:
    run_id = write_output(lake)
    with lake.runs.begin("q") as run:
        pinned = run.look(["b.out"])["b.out"]
        run.transaction.create_table("c.next", ROWS)
        run.finish(
            attachment(
                run.id,
                derivations=(Derivation("c.next", "b.out", pinned.id, None, Version(0)),),
            ),
            changed=True,
        )
    lake.rename_table("a.in", "a.renamed")

    up = lake.runs.lineage("c.next", "up")
    down = lake.runs.lineage("a.renamed", "down")

    assert [(e.output, e.input, e.depth) for e in up] == [
        ("c.next", "b.out", 1),
        ("b.out", "a.renamed", 2),
    ]
    assert [(e.output, e.depth) for e in down] == [("b.out", 1), ("c.next", 2)]
    assert up[1].run_id == run_id
    assert up[1].columns == {"id": ("id",)}


def test_what_is_not_there_is_refused(lake: Lake) -> None:
    with pytest.raises(RunNotFound):
        lake.runs.get("nothing")
    with pytest.raises(TableNotFound):
        lake.runs.lineage("no.table")
