"""lakebed append: every format, stdin, patterns, options of a write, and bad input."""

import gzip
import json
import os
import pty
import re
import subprocess
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.doors.cli.command import PROGRAM, Lakebed, program

ROWS = [{"id": 1, "name": "Ada"}, {"id": 2, "name": None}]


def write(folder: Path, form: str) -> Path:
    path = folder / f"rows.{form}"
    table = pa.Table.from_pylist(ROWS)
    if form == "csv":
        path.write_text("id,name\n1,Ada\n2,\n")
    elif form == "json":
        path.write_text(json.dumps(ROWS))
    elif form == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    elif form == "parquet":
        pq.write_table(table, path)
    else:
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
    return path


@pytest.mark.parametrize("form", ["csv", "json", "jsonl", "parquet", "arrow"])
def test_every_format_is_read_by_its_name(lake: Lakebed, form: str) -> None:
    lake.ok("table", "create", "a.b", "id long, name string")

    commit = lake.json("append", "a.b", write(lake.folder, form))

    assert (commit["version"], commit["operation"], commit["added_rows"]) == (1, "append", 2)
    assert lake.rows("a.b") == ROWS


@pytest.mark.parametrize("form", ["csv", "json", "jsonl", "parquet", "arrow"])
def test_every_format_can_make_a_table(lake: Lakebed, form: str) -> None:
    commit = lake.json("append", "a.b", write(lake.folder, form), "--create")

    assert (commit["version"], commit["operation"], commit["added_rows"]) == (0, "create", 2)
    assert lake.rows("a.b") == ROWS


@pytest.mark.parametrize("form", ["csv", "json", "jsonl", "arrow"])
def test_stdin_is_read_with_a_format(lake: Lakebed, form: str) -> None:
    data = write(lake.folder, form).read_bytes()

    lake.ok("append", "a.b", "-", "--format", form, "--create", stdin=data)
    lake.ok("append", "a.b", "-", "--format", form, stdin=data)

    assert lake.rows("a.b") == [*ROWS, *ROWS]


@pytest.mark.parametrize("form", ["csv", "json", "jsonl", "parquet", "arrow"])
def test_stdin_of_a_real_pipe_is_read(lake: Lakebed, form: str) -> None:
    lake.ok("table", "create", "a.b", "id long, name string")
    data = write(lake.folder, form).read_bytes()

    done = program("append", "a.b", "-", "--format", form, input=data)

    assert done.returncode == 0, done.stderr
    assert lake.rows("a.b") == ROWS


def test_pattern_and_several_files_are_one_commit(lake: Lakebed) -> None:
    lake.write("in/2.csv", "id,name\n2,b\n")
    lake.write("in/1.csv", "id,name\n1,a\n")
    lake.write("more.jsonl", '{"id": 3, "name": "c"}\n')
    lake.ok("table", "create", "a.b", "id long, name string")

    lake.ok("append", "a.b", "in/*.csv", "more.jsonl")

    assert [row["id"] for row in lake.rows("a.b")] == [1, 2, 3]
    assert len(lake.json("history", "a.b")) == 2


def test_compressed_csv_is_read(lake: Lakebed) -> None:
    (lake.folder / "rows.csv.gz").write_bytes(gzip.compress(b"id,name\n1,a\n"))

    lake.ok("append", "a.b", "rows.csv.gz", "--create")

    assert lake.rows("a.b") == [{"id": 1, "name": "a"}]


def test_create_appends_to_a_table_that_is_there(orders: Lakebed) -> None:
    orders.ok("append", "sales.orders", "orders.csv", "--create")

    assert orders.json("table", "list")[0] == {"name": "sales.orders", "version": 2, "rows": 6}


def test_overwrite_takes_the_place_of_all_rows(orders: Lakebed) -> None:
    orders.write("new.csv", "id,name,amount\n9,Z,1\n")

    commit = orders.json("append", "sales.orders", "new.csv", "--overwrite")

    assert (commit["added_rows"], commit["removed_rows"]) == (1, 3)
    assert orders.rows("sales.orders") == [{"id": 9, "name": "Z", "amount": 1.0}]
    assert len(orders.rows("sales.orders", "--version", "1")) == 3


def test_overwrite_of_some_rows_needs_a_partition(lake: Lakebed) -> None:
    lake.ok("table", "create", "a.b", "id long, day string", "--partition-by", "day")
    lake.ok("append", "a.b", lake.write("1.csv", "id,day\n1,mo\n2,tu\n"))

    lake.ok("append", "a.b", lake.write("2.csv", "id,day\n3,mo\n"), "--overwrite", "--partitions")
    lake.ok(
        *("append", "a.b", lake.write("3.csv", "id,day\n4,tu\n")),
        *("--overwrite", "--where", "day = 'tu'"),
    )

    assert sorted(row["id"] for row in lake.rows("a.b")) == [3, 4]


def test_options_of_a_write_reach_the_history(orders: Lakebed) -> None:
    commit = orders.json(
        *("append", "sales.orders", "orders.csv", "--message", "täglich", "--author", "Ada"),
        *("--isolation", "serializable", "--publish", "commit", "--txn", "loader:eu:17"),
    )
    again = orders.json("append", "sales.orders", "orders.csv", "--txn", "loader:eu:17")

    assert (commit["message"], commit["author"], commit["replayed"]) == ("täglich", "Ada", False)
    assert again["replayed"] is True
    assert orders.json("table", "list")[0]["rows"] == 6


@pytest.mark.parametrize("create", [[], ["--create"]])
def test_same_key_again_adds_nothing(orders: Lakebed, create: list[str]) -> None:
    first = orders.json("append", "sales.orders", "orders.csv", "--idempotency-key", "k", *create)
    again = orders.json("append", "sales.orders", "orders.csv", "--idempotency-key", "k", *create)

    assert (first["version"], again["version"]) == (2, 2)
    assert (first["replayed"], again["replayed"]) == (False, True)
    assert orders.json("table", "list")[0]["rows"] == 6


def test_same_key_again_does_not_fill_a_new_table_twice(lake: Lakebed) -> None:
    lake.write("in.csv", "id\n1\n")
    run = ("append", "a.b", "in.csv", "--create", "--idempotency-key", "k")

    lake.ok(*run)
    lake.ok(*run)

    assert lake.rows("a.b") == [{"id": 1}]


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["--format", "xml"], "xml"),
        (["--txn", "no-number"], "APP:N"),
        (["--txn", "loader:x"], "APP:N"),
        (["--isolation", "none"], "none"),
        (["--where", "id = 1"], "--overwrite"),
        (["--partitions"], "--overwrite"),
        (["--unknown"], "--unknown"),
    ],
)
def test_wrong_usage_changes_nothing(orders: Lakebed, arguments: list[str], what: str) -> None:
    answer = orders("append", "sales.orders", "orders.csv", *arguments)

    assert answer.exit_code == 64
    assert answer.stdout == ""
    assert what in answer.stderr
    assert "hint: see lakebed append --help" in answer.stderr
    assert orders.json("table", "list")[0]["version"] == 1


def test_stdin_without_a_format_is_wrong_usage(orders: Lakebed) -> None:
    assert orders("append", "sales.orders", "-", stdin=b"id\n1\n").exit_code == 64


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("bad.csv", b"id,name\n1,a\nx,b\n", {"SCHEMA_MISMATCH", "UNREADABLE_INPUT"}),
        ("bad.csv", b"id,surprise\n1,a\n", {"SCHEMA_MISMATCH"}),
        ("bad.csv", b"id,name\n,a\n", {"SCHEMA_MISMATCH"}),
        ("bad.csv", b"id,name\n1,\xff\xfe\n", {"SCHEMA_MISMATCH", "UNREADABLE_INPUT"}),
        ("bad.json", b'[{"id": 1}', {"UNREADABLE_INPUT"}),
        ("bad.jsonl", b'{"id": 1}\n{"id": \n', {"UNREADABLE_INPUT"}),
        ("bad.parquet", b"PAR1 this is no parquet", {"UNREADABLE_INPUT"}),
        ("bad.arrow", b"ARROW1\0\0nothing", {"UNREADABLE_INPUT"}),
        ("bad.xlsx", b"", {"UNREADABLE_INPUT"}),
    ],
)
def test_bad_file_changes_nothing(
    orders: Lakebed, name: str, content: bytes, code: set[str]
) -> None:
    (orders.folder / name).write_bytes(content)

    answer = orders("append", "sales.orders", name, "--json")

    assert answer.exit_code == 1
    assert answer.stdout == ""
    assert answer.error["code"] in code
    assert answer.error["hint"]
    assert orders.json("table", "list")[0] == {"name": "sales.orders", "version": 1, "rows": 3}


def test_truncated_parquet_changes_nothing(orders: Lakebed) -> None:
    whole = orders.folder / "whole.parquet"
    pq.write_table(pa.table({"id": range(10_000)}), whole)
    (orders.folder / "cut.parquet").write_bytes(whole.read_bytes()[:-100])

    answer = orders("append", "sales.orders", "whole.parquet", "cut.parquet", "--json")

    assert answer.error["code"] == "UNREADABLE_INPUT"
    assert "cut.parquet" in answer.error["message"]
    assert orders.json("table", "list")[0]["rows"] == 3


@pytest.mark.parametrize("file", ["nope.csv", "none/*.csv", "."])
def test_missing_file_is_an_error(orders: Lakebed, file: str) -> None:
    answer = orders("append", "sales.orders", file, "--json")

    assert answer.exit_code == 1
    assert answer.error["code"] == "UNREADABLE_INPUT"


def test_missing_table_is_an_error_and_is_not_made(lake: Lakebed) -> None:
    answer = lake("append", "a.b", lake.write("in.csv", "id\n1\n"), "--json")

    assert answer.error["code"] == "TABLE_NOT_FOUND"
    assert lake.json("namespace", "list") == []


def test_rows_so_far_are_told_on_a_terminal(lake: Lakebed) -> None:
    lake.ok("table", "create", "a.b", "id long")
    ours, theirs = pty.openpty()
    block = "".join(f"{n}\n" for n in range(400_000)).encode()

    with subprocess.Popen(
        [*PROGRAM, "append", "a.b", "-", "--format", "csv"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=theirs,
    ) as loading:
        os.close(theirs)
        assert loading.stdin is not None
        assert loading.stdout is not None
        loading.stdin.write(b"id\n" + block)
        loading.stdin.flush()
        time.sleep(2)
        loading.stdin.write(block)
        loading.stdin.close()
        answered = loading.stdout.read()
        code = loading.wait(60)
        told = os.read(ours, 100_000)
    os.close(ours)

    assert (code, answered) == (0, b"")
    assert re.search(rb"\r[\d,]+ rows", told)
    assert told.endswith(b"a.b is at version 1: 800,000 rows added\r\n")


def test_nothing_about_progress_is_written_outside_a_terminal(orders: Lakebed) -> None:
    answer = orders.ok("append", "sales.orders", "orders.csv")

    assert answer.stderr == "sales.orders is at version 2: 3 rows added\n"
