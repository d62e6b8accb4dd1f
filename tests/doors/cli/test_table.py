"""lakebed table create, list, show, alter, rename, drop, dropped, purge."""

import contextlib
import os
import pty
import subprocess
import time
from pathlib import Path

import pytest

from tests.doors.cli.command import PROGRAM, Lakebed


def test_create_takes_everything_a_table_can_have(lake: Lakebed) -> None:
    shown = lake.json(
        *("table", "create", "sales.eu.orders"),
        "id long not null comment 'the number', ts timestamp, region string, amount decimal(12,2)",
        *("--partition-by", "day(ts),bucket(16, id)", "--partition-by", "region"),
        *("--sort-by", "amount desc", "--primary-key", "id"),
        *("--property", "write.parquet.row-group-rows=1000"),
        *("--formats", "iceberg", "--comment", "Orders of Žofie", "--message", "first"),
    )

    assert shown == lake.json("table", "show", "sales.eu.orders")
    assert shown["name"] == "sales.eu.orders"
    assert (shown["version"], shown["rows"]) == (0, 0)
    assert shown["columns"][0] == {
        "id": 1,
        "name": "id",
        "type": "long",
        "required": True,
        "default": None,
        "comment": "the number",
    }
    assert shown["partition_by"] == ["day(ts)", "bucket(16, id)", "region"]
    assert shown["sort_by"] == ["amount desc nulls last"]
    assert shown["primary_key"] == ["id"]
    assert shown["properties"] == {"write.parquet.row-group-rows": "1000"}
    assert shown["formats"] == ["iceberg"]
    assert shown["comment"] == "Orders of Žofie"
    assert not (Path(shown["location"]) / "_delta_log").exists()
    assert lake.json("history", "sales.eu.orders")[0]["message"] == "first"


def test_create_like_takes_the_columns_of_a_file(lake: Lakebed) -> None:
    lake.write("in.csv", "id,name\n1,Ada\n")

    shown = lake.json("table", "create", "a.b", "--like", "in.csv")

    assert [(c["name"], c["type"]) for c in shown["columns"]] == [
        ("id", "long"),
        ("name", "string"),
    ]
    assert shown["rows"] == 0


@pytest.mark.parametrize("arguments", [[], ["id long", "--like", "in.csv"]])
def test_create_needs_exactly_one_source_of_columns(lake: Lakebed, arguments: list[str]) -> None:
    assert lake("table", "create", "a.b", *arguments).exit_code == 64
    assert lake.json("table", "list") == []


@pytest.mark.parametrize(
    ("schema", "code"),
    [
        ("id lnog", "INVALID_SCHEMA"),
        ("id long,", "INVALID_SCHEMA"),
        ("", "INVALID_SCHEMA"),
        ("a int, A int", "INVALID_SCHEMA"),
        ("_row_id int", "INVALID_NAME"),
    ],
)
def test_bad_schema_is_refused_with_a_hint(lake: Lakebed, schema: str, code: str) -> None:
    answer = lake("table", "create", "a.b", schema, "--json")

    assert answer.exit_code == 1
    assert answer.error["code"] == code
    assert answer.error["hint"]
    assert lake.json("table", "list") == []


@pytest.mark.parametrize("name", ["orders", "", "a..b", "a.b/c", " a.b", "a.b\n"])
def test_bad_table_name_is_refused(lake: Lakebed, name: str) -> None:
    answer = lake("table", "create", name, "id long", "--json")

    assert answer.exit_code == 1
    assert answer.error["code"] == "INVALID_NAME"


def test_list_shows_versions_and_rows(orders: Lakebed) -> None:
    orders.ok("table", "create", "other.t", "id long")

    assert orders.json("table", "list") == [
        {"name": "other.t", "version": 0, "rows": 0},
        {"name": "sales.orders", "version": 1, "rows": 3},
    ]
    assert orders.json("table", "list", "sales") == [
        {"name": "sales.orders", "version": 1, "rows": 3}
    ]
    assert orders.ok("table", "list", "sales").stdout == (
        "name          version  rows\nsales.orders        1     3\n"
    )


def test_show_is_readable_and_leaves_out_what_is_not_there(orders: Lakebed) -> None:
    lines = orders.ok("table", "show", "sales.orders").stdout.splitlines()

    assert lines[0].split() == ["name", "sales.orders"]
    assert any(line.split() == ["columns", "id", "long", "not", "null"] for line in lines)
    assert not any(line.startswith("comment") for line in lines)


def test_names_outside_ascii_work_everywhere(lake: Lakebed) -> None:
    name = "продажи.注文 été"
    lake.write("in.csv", "naïve,数\nπ,1\n")
    lake.ok("append", name, "in.csv", "--create")

    lake.ok("table", "rename", name, "продажи.заказы")

    assert lake.rows("продажи.заказы") == [{"naïve": "π", "数": 1}]
    assert "注文 été" not in lake.ok("table", "list").stdout


def test_add_column_is_one_commit_and_old_rows_read_null(orders: Lakebed) -> None:
    commit = orders.json(
        *("table", "alter", "sales.orders", "--message", "more"),
        *("--add-column", "note string comment 'free', `unit price` decimal(10,2)"),
        *("--add-column", "tags list<string>", "--column-comment", "name=who"),
    )

    columns = orders.json("table", "show", "sales.orders")["columns"]
    assert (commit["version"], commit["operation"], commit["published"]) == (2, "alter", True)
    assert [c["name"] for c in columns[3:]] == ["note", "unit price", "tags"]
    assert (columns[1]["comment"], columns[3]["comment"]) == ("who", "free")
    assert orders.rows("sales.orders", "--columns", "id,note", "--limit", "1") == [
        {"id": 1, "note": None}
    ]


def test_columns_properties_and_formats_change_in_one_commit(orders: Lakebed) -> None:
    orders.ok("table", "alter", "sales.orders", "--set", "team=a", "--set", "x=y")

    commit = orders.json(
        *("table", "alter", "sales.orders", "--add-column", "deep struct<`a b`: int>"),
        *("--unset", "x", "--set", "team=b", "--formats", "delta"),
    )

    shown = orders.json("table", "show", "sales.orders")
    assert commit["version"] == shown["version"] == 3
    assert (shown["properties"], shown["formats"]) == ({"team": "b"}, ["delta"])
    assert shown["columns"][-1]["name"] == "deep"


def test_columns_are_renamed_and_dropped(orders: Lakebed) -> None:
    before = [c["name"] for c in orders.json("table", "show", "sales.orders")["columns"]]

    orders.ok(
        *("table", "alter", "sales.orders", "--rename-column", f"{before[1]}=who"),
        *("--drop-column", before[2], "--add-column", f"{before[2]} long"),
    )

    columns = orders.json("table", "show", "sales.orders")["columns"]
    assert [c["name"] for c in columns] == [before[0], "who", before[2]]
    assert columns[2]["type"] == "long"
    assert orders("table", "alter", "sales.orders", "--drop-column", "nope").exit_code == 1


@pytest.mark.parametrize(
    ("arguments", "exit_code"),
    [
        ([], 64),
        (["--set", "a"], 64),
        (["--add-column", "x int not null"], 1),
        (["--add-column", "NAME string"], 1),
        (["--add-column", "x"], 1),
        (["--column-comment", "nope=x"], 1),
        (["--formats", "hudi"], 1),
        (["--set", "delta.appendOnly=true"], 1),
    ],
)
def test_bad_change_leaves_the_table_alone(
    orders: Lakebed, arguments: list[str], exit_code: int
) -> None:
    answer = orders("table", "alter", "sales.orders", *arguments)

    assert answer.exit_code == exit_code
    assert answer.stdout == ""
    assert orders.json("table", "list")[0]["version"] == 1


def test_rename_to_a_name_in_use_is_refused(orders: Lakebed) -> None:
    orders.ok("table", "create", "sales.lines", "id long")

    answer = orders("table", "rename", "sales.orders", "sales.lines", "--json")

    assert answer.error["code"] == "TABLE_EXISTS"
    assert orders.rows("sales.orders", "--limit", "1")


def test_drop_keeps_the_files_until_they_are_purged(orders: Lakebed) -> None:
    location = Path(orders.json("table", "show", "sales.orders")["location"])

    dropped = orders.json("table", "drop", "sales.orders")
    kept = orders.json("table", "dropped")
    was_there = location.is_dir()
    purged = orders.json("table", "purge", "sales.orders")

    assert dropped == {"dropped": "sales.orders", "purged": False}
    assert kept == [{"name": "sales.orders", "location": str(location)}]
    assert was_there
    assert purged == {"purged": "sales.orders", "tables": 1}
    assert not location.exists()
    assert orders.json("table", "dropped") == []


def test_drop_with_purge_deletes_the_files_at_once(orders: Lakebed) -> None:
    location = Path(orders.json("table", "show", "sales.orders")["location"])

    orders.ok("table", "drop", "sales.orders", "--purge", "--yes")

    assert not location.exists()
    assert orders("cat", "sales.orders").exit_code == 1


@pytest.mark.parametrize(
    ("typed", "exit_code", "left"), [(b"n\n", 1, 1), (b"y\n", 0, 0), (b"\x03", 130, 1)]
)
def test_drop_asks_on_a_terminal(orders: Lakebed, typed: bytes, exit_code: int, left: int) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*PROGRAM, "table", "drop", "sales.orders"],
        stdin=theirs,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=_take_terminal,  # noqa: PLW1509  # no thread runs here
    ) as asking:
        os.close(theirs)
        assert asking.stderr is not None
        question = asking.stderr.read(len("Drop sales.orders"))
        code = _type_until_it_ends(asking, ours, typed)
        rest = asking.stderr.read()
    os.close(ours)

    assert question == b"Drop sales.orders"
    assert b"3 rows" in rest
    assert code == exit_code
    assert len(orders.json("table", "list")) == left


def _type_until_it_ends(asking: "subprocess.Popen[bytes]", terminal: int, typed: bytes) -> int:
    """As slowly as a person: a signal between the question and the read of the answer is lost."""
    for _ in range(5):
        time.sleep(0.3)
        os.write(terminal, typed)
        with contextlib.suppress(subprocess.TimeoutExpired):
            return asking.wait(8)
    asking.kill()
    return asking.wait()


def _take_terminal() -> None:
    """Make stdin the terminal that sends ^C to this process."""
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
