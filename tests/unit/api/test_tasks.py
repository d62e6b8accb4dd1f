"""Reading and writing in other processes: tasks travel pickled and ask no database."""

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakebed
from lakebed.api.read_task import ReadTask
from lakebed.api.write_task import WriteTask, Written

ROWS = [{"id": n, "v": f"w{n}"} for n in range(6)]


def rows_of(tasks: list[ReadTask]) -> list[dict[str, Any]]:
    batches = [batch for task in tasks for batch in task.to_batches()]
    return sorted(
        (row for batch in batches for row in batch.to_pylist()), key=lambda row: row["id"]
    )


def written(task: WriteTask, rows: list[dict[str, Any]]) -> Written:
    """By a worker, which gets the task as bytes and gives what it did as bytes."""
    arrived: WriteTask = pickle.loads(pickle.dumps(task))
    made = arrived.write(pa.Table.from_pylist(rows).to_batches())
    back: Written = pickle.loads(pickle.dumps(made))
    return back


def files_of(lake: lakebed.Lake) -> list[Path]:
    return sorted(Path(lake.warehouse.removeprefix("file://")).rglob("*.parquet"))


def test_tasks_read_a_version_without_its_deleted_rows(disk: lakebed.Lake) -> None:
    table = disk.create_table("s.t", ROWS)
    table.delete("id = 2")
    table.append([{"id": 9, "v": "n"}])

    tasks = pickle.loads(pickle.dumps(table.scan(where="id > 0", columns=["id"]).tasks()))
    table.delete("id = 1")

    assert [row["id"] for row in rows_of(tasks)] == [1, 3, 4, 5, 9]
    assert tasks[0].arrow_schema.names == ["id"]
    assert all(live.file.stats == {} for task in tasks for live in task.plan.files)


def test_small_files_share_a_task(disk: lakebed.Lake) -> None:
    table = disk.create_table("s.t", ROWS)
    for _ in range(5):
        table.append(ROWS)

    assert len(table.scan().tasks()) == 1
    assert len(rows_of(table.scan().tasks())) == 36


def test_tasks_are_read_by_a_process_that_has_no_database(
    disk: lakebed.Lake, tmp_path: Path
) -> None:
    disk.create_table("s.t", ROWS).delete("id = 0")
    (tmp_path / "task").write_bytes(pickle.dumps(disk.table("s.t").scan().tasks()[0]))
    code = (
        "import pickle, sys; task = pickle.load(open(sys.argv[1], 'rb'));"
        "print(sum(b.num_rows for b in task.to_batches()), 'sqlite3' in sys.modules)"
    )

    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "task"], capture_output=True, text=True, check=True
    )

    assert done.stdout.split()[0] == "5"


def test_what_several_workers_wrote_is_one_commit(disk: lakebed.Lake) -> None:
    table = disk.create_table("s.t", "id long, v string", partition_by=["v"])
    task = disk.write_task("s.t")

    parts = [written(task, ROWS[:3]), written(task, ROWS[3:])]
    commit = disk.commit_written(task, parts, message="both")

    assert (commit.version, commit.message) == (1, "both")
    assert table.row_count == 6
    assert len(table.files()) == 6
    assert disk.check().clean


def test_a_table_is_created_together_with_what_was_written(disk: lakebed.Lake) -> None:
    shape = pa.schema([("id", pa.int64()), ("v", pa.string())])
    task = disk.write_task("s.t", shape, primary_key=["id"])
    assert not disk.has_table("s.t")

    commit = disk.commit_written(task, [written(task, ROWS)])

    assert (commit.version, commit.operation) == (0, "create")
    assert disk.table("s.t").row_count == 6
    assert disk.check().clean


def test_a_table_that_somebody_else_created_meanwhile_stays_theirs(disk: lakebed.Lake) -> None:
    shape = pa.schema([("id", pa.int64()), ("v", pa.string())])
    task = disk.write_task("s.t", shape)
    made = written(task, ROWS)
    disk.create_table("s.t", "other int")

    with pytest.raises(lakebed.TableExists):
        disk.commit_written(task, [made])

    assert disk.table("s.t").schema.fields[0].name == "other"
    disk.discard_written(task, [made])
    assert files_of(disk) == []
    assert disk.check().clean


def test_rows_written_for_other_columns_are_refused(disk: lakebed.Lake) -> None:
    table = disk.create_table("s.t", "id long, v string")
    task = disk.write_task("s.t")
    made = written(task, ROWS)
    table.alter().add_column("n", "int").commit()

    with pytest.raises(lakebed.CommitConflict, match="altered while its rows were written"):
        disk.commit_written(task, [made])

    disk.discard_written(task, [made])
    assert files_of(disk) == []


def test_properties_may_change_while_rows_are_written(disk: lakebed.Lake) -> None:
    table = disk.create_table("s.t", "id long, v string")
    task = disk.write_task("s.t")
    made = written(task, ROWS)
    table.set_properties({"owner": "me"})
    table.append([{"id": 77, "v": "other"}])

    disk.commit_written(task, [made])

    assert table.row_count == 7


def test_what_was_committed_is_not_discarded(disk: lakebed.Lake) -> None:
    """A commit may stand though whoever asked for it was told that it failed."""
    shape = pa.schema([("id", pa.int64()), ("v", pa.string())])
    task = disk.write_task("s.t", shape)
    first = written(task, ROWS)
    disk.commit_written(task, [first])
    again = disk.write_task("s.t")
    second, lost = written(again, ROWS), written(again, ROWS)
    disk.commit_written(again, [second])

    disk.discard_written(task, [first])
    disk.discard_written(again, [second, lost])

    assert len(files_of(disk)) == 2
    assert disk.table("s.t").to_arrow().num_rows == 12
    assert disk.check().clean


def test_an_overwrite_checks_every_row_where_it_is_written(disk: lakebed.Lake) -> None:
    table = disk.create_table("s.t", ROWS)
    task = disk.write_task("s.t", where="id > 3")

    with pytest.raises(lakebed.SchemaMismatch):
        written(task, ROWS)
    made = written(task, [{"id": 50, "v": "n"}])
    disk.commit_written(task, [made], overwrite=True, where="id > 3")

    assert sorted(table.to_arrow()["id"].to_pylist()) == [0, 1, 2, 3, 50]


def test_rows_checked_for_one_condition_do_not_replace_those_of_another(
    disk: lakebed.Lake,
) -> None:
    disk.create_table("s.t", ROWS)
    task = disk.write_task("s.t", where="id > 3")
    made = written(task, [{"id": 50, "v": "n"}])

    with pytest.raises(lakebed.CommitConflict):
        disk.commit_written(task, [made], overwrite=True, where="id > 1")


def test_constraints_hold_in_workers(disk: lakebed.Lake) -> None:
    disk.create_table("s.t", "id long, v string", constraints={"odd": "id > 1 AND abs(id) < 90"})
    task = disk.write_task("s.t")

    with pytest.raises(lakebed.InvalidInput, match="odd"):
        written(task, ROWS)

    assert files_of(disk) == []


def test_spooled_rows_come_back_as_they_were(disk: lakebed.Lake) -> None:
    disk.create_table("s.t", "id long, v string", partition_by=["v"], primary_key=["id"])
    task = disk.write_task("s.t")

    made = task.spool(pa.Table.from_pylist(ROWS).to_batches())

    assert len(made.files) == 1
    assert rows_of([task.spooled([made])]) == ROWS
    disk.discard_written(task, [made])
    assert files_of(disk) == []


def test_rows_are_written_to_a_branch(disk: lakebed.Lake) -> None:
    table = disk.create_table("s.t", ROWS)
    table.create_branch("dev")
    task = disk.write_task("s.t@dev")

    disk.commit_written(task, [written(task, ROWS)])

    assert table.row_count == 6
    assert disk.table("s.t@dev").to_arrow().num_rows == 12


def test_the_last_number_of_an_application_is_known(disk: lakebed.Lake) -> None:
    table = disk.create_table("s.t", ROWS)
    assert table.last_txn("app") is None

    table.append(ROWS, txn=("app", 3))
    table.append(ROWS, txn=("other", 9))

    assert table.last_txn("app") == 3
