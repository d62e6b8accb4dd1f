"""`lakebed sql`: a text, a file or stdin; rows go to stdout, all else to stderr."""

import io

import pyarrow.parquet as pq
import pytest

from tests.doors.cli.command import Lakebed


def test_rows_are_a_table_by_default(orders: Lakebed) -> None:
    answer = orders.ok("sql", "SELECT id, name FROM sales.orders ORDER BY id")

    assert answer.stdout == "id  name\n 1  Ada\n 2  NULL\n 3  Žofie\n"
    assert answer.stderr == ""


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("csv", '"id","name"\n1,"Ada"\n2,\n'),
        ("jsonl", '{"id":1,"name":"Ada"}\n{"id":2,"name":null}\n'),
        ("json", '[\n{"id":1,"name":"Ada"},\n{"id":2,"name":null}\n]\n'),
    ],
)
def test_rows_are_written_in_the_format_asked_for(
    orders: Lakebed, form: str, expected: str
) -> None:
    text = "SELECT id, name FROM sales.orders ORDER BY id"

    assert orders.ok("sql", text, "--format", form, "--limit", "2").stdout == expected


def test_rows_are_written_as_parquet(orders: Lakebed) -> None:
    answer = orders.ok("sql", "SELECT id FROM sales.orders ORDER BY id", "--format", "parquet")

    assert pq.read_table(io.BytesIO(answer.stdout_bytes)).to_pylist() == [
        {"id": 1},
        {"id": 2},
        {"id": 3},
    ]


def test_script_comes_from_a_file_or_stdin(orders: Lakebed) -> None:
    script = orders.write(
        "script.sql", "SELECT 1 AS one;\n-- a comment; with a mark\nSELECT 2 AS two;"
    )

    for answer in (
        orders.ok("sql", "--file", script),
        orders.ok("sql", stdin=script.read_text()),
        orders.ok("sql", "--file", "-", stdin=script.read_text()),
    ):
        assert answer.stdout == "one\n  1\ntwo\n  2\n"


def test_what_was_done_goes_to_stderr_or_is_json(orders: Lakebed) -> None:
    answer = orders.ok("sql", "DELETE FROM sales.orders WHERE id = 1")
    told = orders.json("sql", "DELETE FROM sales.orders WHERE id = 2", "--message", "why")

    assert (answer.stdout, answer.stderr) == ("", "sales.orders: delete, version 2\n")
    assert (told["version"], told["deleted_rows"]) == (3, 1)
    history = orders.ok(
        "sql", "SELECT message FROM sales.orders$history LIMIT 1", "--format", "csv"
    )
    assert history.stdout == '"message"\n"why"\n'


def test_parameters_are_texts(orders: Lakebed) -> None:
    text = "SELECT id FROM sales.orders WHERE name = $name AND id = CAST($id AS INT)"
    answer = orders.ok("sql", text, "--param", "name=Ada", "--param", "id=1")

    assert answer.stdout == "id\n 1\n"


def test_timing_is_told_on_stderr(orders: Lakebed) -> None:
    answer = orders.ok("sql", "SELECT 1 AS a; SELECT 2 AS b", "--timing")

    assert answer.stderr.count(" ms\n") == 2


def test_error_shows_the_place_and_has_a_code(orders: Lakebed) -> None:
    answer = orders("sql", "SELECT id FROM sales.orders WHERE nme = 1")

    assert answer.exit_code == 1
    assert answer.stdout == ""
    told = 'line 1, column 35: Referenced column "nme" not found in FROM clause!'
    assert answer.stderr.splitlines() == [
        f"error: {told} [SQL_UNKNOWN_COLUMN]",
        "  SELECT id FROM sales.orders WHERE nme = 1",
        "                                    ^",
        "hint: did you mean name?",
    ]


def test_error_is_json_when_json_is_asked_for(orders: Lakebed) -> None:
    answer = orders("sql", "SELECT 1;\nSELECT nme FROM sales.orders", "--json")

    assert answer.exit_code == 1
    assert answer.error["code"] == "SQL_UNKNOWN_COLUMN"
    assert answer.error["context"]["line"] == 2


def test_first_error_ends_a_script_and_what_was_done_stands(orders: Lakebed) -> None:
    text = "DELETE FROM sales.orders WHERE id = 1; SELECT nope; DELETE FROM sales.orders"
    answer = orders("sql", text)

    assert answer.exit_code == 1
    assert "statement 2" in answer.stderr
    assert len(orders.rows("sales.orders")) == 2


def test_script_that_cannot_be_read_runs_nothing(orders: Lakebed) -> None:
    answer = orders("sql", "DELETE FROM sales.orders; SELEC")

    assert answer.exit_code == 1
    assert len(orders.rows("sales.orders")) == 3


def test_transaction_left_open_is_rolled_back_and_an_error(orders: Lakebed) -> None:
    answer = orders("sql", "BEGIN; DELETE FROM sales.orders")

    assert answer.exit_code == 1
    assert "left open" in answer.stderr
    assert len(orders.rows("sales.orders")) == 3


def test_copy_touches_the_current_folder_only(orders: Lakebed) -> None:
    orders.ok("sql", "COPY sales.orders TO 'out.jsonl'")
    answer = orders("sql", "COPY sales.orders TO '../out.jsonl'")

    assert len((orders.folder / "out.jsonl").read_text().splitlines()) == 3
    assert answer.exit_code == 1
    assert "FORBIDDEN" in answer.stderr
    assert not (orders.folder.parent / "out.jsonl").exists()


def test_two_columns_of_one_name_are_both_written(orders: Lakebed) -> None:
    assert orders.ok("sql", "SELECT 1 AS a, 2 AS a").stdout == "a  a_2\n1    2\n"
    assert orders.json("sql", "SELECT 1 AS a, 2 AS a, 3 AS a_2") == [{"a": 1, "a_3": 2, "a_2": 3}]


def test_every_type_of_the_engine_is_written(orders: Lakebed) -> None:
    text = (
        "SELECT INTERVAL 1 DAY AS i, {'a': [1]} AS s, MAP {'k': 2} AS m, TIME '10:00' AS t,"
        " 'x'::BLOB AS b, 1.5 AS d, 'nan'::DOUBLE AS f, NULL AS n, union_value(k := 1) AS u,"
        " [1, 2]::INT[2] AS l, uuid() IS NULL AS z"
    )
    (row,) = orders.json("sql", text)

    assert row["i"] == "P0M1DT0S"
    assert (row["s"], row["m"], row["l"]) == ({"a": [1]}, {"k": 2}, [1, 2])
    assert (row["d"], row["f"], row["n"], row["z"]) == ("1.5", "NaN", None, False)
    orders.ok("sql", text)
    orders.ok("sql", text, "--format", "csv")


@pytest.mark.parametrize(
    "arguments",
    [("SELECT 1", "--file", "x.sql"), ("--file", "none.sql"), ("SELECT 1", "--param", "x")],
)
def test_wrong_usage_has_its_own_exit_code(orders: Lakebed, arguments: tuple[str, ...]) -> None:
    orders.write("x.sql", "SELECT 1")

    assert orders("sql", *arguments).exit_code == 64


def test_nothing_to_do_is_no_error(orders: Lakebed) -> None:
    assert orders.ok("sql", " ;; ").stdout == ""
