"""lakebed cat: every format, columns, conditions, versions, and a reader that goes away."""

import csv
import io
import json
import subprocess
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakebed.api.open import open as open_lake
from tests.doors.cli.command import PROGRAM, Lakebed

ROWS = [
    {"id": 1, "name": "Ada", "amount": 2.5},
    {"id": 2, "name": None, "amount": 3.0},
    {"id": 3, "name": "Žofie", "amount": None},
]


def test_table_is_aligned_and_marks_nulls(orders: Lakebed) -> None:
    assert orders.ok("cat", "sales.orders").stdout == (
        "id  name   amount\n 1  Ada       2.5\n 2  NULL      3.0\n 3  Žofie    NULL\n"
    )


def test_json_is_an_array_of_objects(orders: Lakebed) -> None:
    assert orders.json("cat", "sales.orders") == ROWS
    assert orders.ok("cat", "sales.orders", "--format", "json").json == ROWS


def test_jsonl_is_an_object_per_line(orders: Lakebed) -> None:
    lines = orders.ok("cat", "sales.orders", "--format", "jsonl").stdout.splitlines()

    assert [json.loads(line) for line in lines] == ROWS


def test_csv_keeps_null_and_empty_text_apart(lake: Lakebed) -> None:
    lake.ok("append", "a.b", lake.write("in.jsonl", '{"a": ""}\n{"a": null}\n'), "--create")

    assert lake.ok("cat", "a.b", "--format", "csv").stdout == '"a"\n""\n\n'


def test_binary_formats_are_what_their_readers_expect(orders: Lakebed) -> None:
    parquet = orders.ok("cat", "sales.orders", "--format", "parquet").stdout_bytes
    arrow = orders.ok("cat", "sales.orders", "--format", "arrow").stdout_bytes

    assert pq.read_table(io.BytesIO(parquet)).to_pylist() == ROWS
    assert pa.ipc.open_stream(arrow).read_all().to_pylist() == ROWS


@pytest.mark.parametrize(
    ("form", "empty"),
    [("json", "[]\n"), ("jsonl", ""), ("csv", '"id"\n'), ("table", "id\n")],
)
def test_table_without_rows_is_still_well_formed(lake: Lakebed, form: str, empty: str) -> None:
    lake.ok("table", "create", "a.b", "id long")

    assert lake.ok("cat", "a.b", "--format", form).stdout == empty


def test_columns_condition_limit_version_and_time(orders: Lakebed) -> None:
    orders.ok("append", "sales.orders", "orders.csv")
    time = orders.json("history", "sales.orders")[1]["time"]

    assert orders.rows("sales.orders", "--columns", "name,id", "--limit", "1") == [
        {"name": "Ada", "id": 1}
    ]
    assert len(orders.rows("sales.orders", "--where", "amount >= 2.5 and id < 3")) == 4
    assert orders.rows("sales.orders", "--version", "1") == ROWS
    assert orders.rows("sales.orders", "--timestamp", time) == ROWS
    assert orders.rows("sales.orders", "--limit", "0") == []


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--version", "9"], "VERSION_NOT_FOUND"),
        (["--timestamp", "1999-01-01"], "VERSION_NOT_FOUND"),
        (["--timestamp", "yesterday"], "INVALID_INPUT"),
        (["--where", "id ="], "INVALID_EXPRESSION"),
        (["--where", "nope = 1"], None),
        (["--columns", "nope"], None),
        (["--version", "0", "--timestamp", "2026-01-01"], "INVALID_INPUT"),
    ],
)
def test_what_cannot_be_read_is_an_error_without_output(
    orders: Lakebed, arguments: list[str], code: str | None
) -> None:
    answer = orders("cat", "sales.orders", *arguments, "--json")

    assert answer.exit_code == 1
    assert answer.stdout == ""
    assert code is None or answer.error["code"] == code
    assert answer.error["code"] != "DEFECT"


def test_values_of_every_type_are_exact_text_or_numbers(lake: Lakebed) -> None:
    columns = (
        "l long, d decimal(20,7), f double, day date, ts timestamp, ntz timestamp_ntz, b binary,"
        " s struct<x: int, `y z`: string>, li list<int>, m map<string, int>, mi map<int, string>,"
        " t boolean"
    )
    rows = pa.table(
        {
            "l": [9007199254740993],
            "d": pa.array(["1234567890123.0000001"]).cast(pa.decimal128(20, 7)),
            "f": [float("nan")],
            "day": pa.array([0], pa.date32()),
            "ts": pa.array([1_500_000], pa.timestamp("us", "UTC")),
            "ntz": pa.array([0], pa.timestamp("us")),
            "b": [b"\x00\xff"],
            "s": [{"x": 1, "y z": None}],
            "li": [[1, None]],
            "m": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int32())),
            "mi": pa.array([[(1, "v")]], pa.map_(pa.int32(), pa.string())),
            "t": [True],
        }
    )
    lake.ok("table", "create", "a.b", columns)
    with open_lake(lake.folder) as handle:
        handle.table("a.b").append(rows)
        handle.table("a.b").append([{}])

    full, empty = lake.rows("a.b")
    text = lake.ok("cat", "a.b", "--format", "csv").stdout

    assert full == {
        "l": 9007199254740993,
        "d": "1234567890123.0000001",
        "f": "NaN",
        "day": "1970-01-01",
        "ts": "1970-01-01T00:00:01.500000Z",
        "ntz": "1970-01-01T00:00:00",
        "b": "00ff",
        "s": {"x": 1, "y z": None},
        "li": [1, None],
        "m": {"k": 1},
        "mi": [[1, "v"]],
        "t": True,
    }
    assert set(empty.values()) == {None}
    read = next(csv.DictReader(io.StringIO(text)))
    assert (read["d"], read["li"], read["s"]) == (
        "1234567890123.0000001",
        "[1,null]",
        '{"x":1,"y z":null}',
    )


@pytest.mark.parametrize("form", ["csv", "json", "jsonl", "parquet", "arrow"])
def test_what_is_written_can_be_appended_again(lake: Lakebed, form: str) -> None:
    columns = "id long, name string, d decimal(20,7), day date, ts timestamp, ok boolean"
    rows = [
        (
            '{"id": 1, "name": "a,\\"b\\n", "d": "0.0000001", "day": "2024-02-29",'
            ' "ts": "2024-02-29T12:00:00.000001Z", "ok": true}'
        ),
        '{"id": 2, "name": ""}',
    ]
    lake.ok("table", "create", "a.b", columns)
    lake.ok("table", "create", "a.copy", columns)
    lake.ok("append", "a.b", lake.write("in.jsonl", "\n".join(rows)))

    written = lake.ok("cat", "a.b", "--format", form).stdout_bytes
    lake.ok("append", "a.copy", "-", "--format", form, stdin=written)

    assert lake.rows("a.copy") == lake.rows("a.b")
    assert lake.rows("a.copy")[0]["name"] == 'a,"b\n'


def test_control_characters_cannot_reach_a_terminal(lake: Lakebed) -> None:
    lake.ok("append", "a.b", "-", "--format", "json", "--create", stdin='[{"a": "x\\n\\u001b[2J"}]')

    assert lake.ok("cat", "a.b").stdout == "a\nx\\n\\x1b[2J\n"


def test_wide_characters_are_aligned_by_their_width(lake: Lakebed) -> None:
    lake.ok("append", "a.b", "-", "--format", "csv", "--create", stdin="a,b\n数字,1\nab,2\n")

    assert lake.ok("cat", "a.b").stdout == "a     b\n数字  1\nab    2\n"


@pytest.mark.parametrize("form", ["table", "csv", "json", "jsonl", "parquet", "arrow"])
def test_closed_pipe_is_quiet(lake: Lakebed, form: str) -> None:
    with open_lake(lake.folder) as handle:
        handle.create_table("a.b", pa.table({"n": range(200_000)}))

    with subprocess.Popen(
        [*PROGRAM, "cat", "a.b", "--format", form],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as writing:
        assert writing.stdout is not None
        assert writing.stderr is not None
        writing.stdout.read(10)
        writing.stdout.close()
        told = writing.stderr.read()
        code = writing.wait(60)

    assert (code, told) == (0, b"")


def test_output_that_cannot_be_written_is_an_error_not_a_defect(orders: Lakebed) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*PROGRAM, "cat", "sales.orders", "--format", "jsonl"],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )

    assert done.returncode == 1
    assert b"No space left" in done.stderr
    assert b"Traceback" not in done.stderr
    assert b"defect" not in done.stderr
