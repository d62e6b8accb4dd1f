"""Errors of the engine are told in the user's words: names, lines and columns of the text."""

import pytest

from lakebed import Lake, LakebedError


def refusal(lake: Lake, text: str, params: object = None) -> LakebedError:
    with pytest.raises(LakebedError) as caught, lake.sql(text, params) as result:  # type: ignore[arg-type]
        result.to_arrow()
    assert "__lakebed" not in caught.value.message + caught.value.hint
    assert caught.value.hint
    return caught.value


@pytest.mark.parametrize(
    ("text", "code", "line", "column"),
    [
        ("SELECT nme FROM s.t", "SQL_UNKNOWN_COLUMN", 1, 8),
        ("SELECT id\nFROM s.t\n  WHERE nme = 1", "SQL_UNKNOWN_COLUMN", 3, 9),
        ("SELECT /* nme */ t.id, t.nme FROM s.t AS t", "SQL_UNKNOWN_COLUMN", 1, 24),
        ("SELECT a.id FROM s.t a JOIN s.t b ON a.id = b.nme", "SQL_UNKNOWN_COLUMN", 1, 45),
        ("SELECT id FROM s.t a, s.t b", "SQL_AMBIGUOUS_NAME", 1, 8),
        ("SELECT name + 1 FROM s.t", "SQL_TYPES", 1, 13),
        ("SELECT id FROM s.t WHERE id > CAST('x' AS INT)", "CONVERSION_FAILED", 1, 31),
        ("SELECT nofunction(id) FROM s.t", "SQL_UNKNOWN_NAME", 1, 8),
        ("UPDATE s.t\nSET name = upper(nme)", "SQL_UNKNOWN_COLUMN", 2, 18),
        ("DELETE FROM s.t WHERE nme = 1", "SQL_UNKNOWN_COLUMN", 1, 23),
        ("INSERT INTO s.t (id, nme) VALUES (1, 'x')", "SQL_UNKNOWN_COLUMN", 1, 22),
        ("INSERT INTO s.t (id)\nSELECT ids FROM s.t", "SQL_UNKNOWN_COLUMN", 2, 8),
        ("SELECT * FROM s.t TIMESTAMP AS OF 'abc'", "CONVERSION_FAILED", 1, 35),
    ],
)
def test_place_of_an_error_is_that_of_the_users_text(
    lake: Lake, text: str, code: str, line: int, column: int
) -> None:
    error = refusal(lake, text)

    assert error.code == code
    assert (error.context["line"], error.context["character"]) == (line, column)
    assert f"line {line}, column {column}: " in error.message


def test_error_shows_the_line_and_marks_the_place(lake: Lake) -> None:
    error = refusal(lake, "SELECT nme FROM s.t")

    assert error.message.splitlines()[1:] == ["  SELECT nme FROM s.t", "         ^"]
    assert error.hint == "did you mean name?"


@pytest.mark.parametrize(
    "text",
    ["DELETE FROM s.t WHERE zzz = 1", "UPDATE s.t SET name = zzz", "DELETE FROM s.t WHERE _p = 1"],
)
def test_columns_that_only_the_engine_has_are_not_suggested(lake: Lake, text: str) -> None:
    hint = refusal(lake, text).hint

    assert "_pos" not in hint
    assert "_file" not in hint


def test_error_in_a_script_names_the_statement(lake: Lake) -> None:
    error = refusal(lake, "SELECT 1;\nSELECT nme FROM s.t")

    assert error.message.startswith("statement 2, line 2, column 8: ")


def test_parameters_do_not_move_the_place(lake: Lake) -> None:
    error = refusal(lake, "SELECT ?, nme FROM s.t WHERE id = ?", [1, 2])

    assert error.context["character"] == 11


def test_subquery_without_an_alias_is_called_as_the_user_wrote_it(lake: Lake) -> None:
    result = lake.sql("SELECT (SELECT max(id) FROM s.t), EXISTS (SELECT 1 FROM s.t)")

    assert result.columns == ["(SELECT max(id) FROM s.t)", "EXISTS(SELECT 1 FROM s.t)"]
    assert result.to_arrow().num_rows == 1


def test_explain_speaks_of_the_users_tables(lake: Lake) -> None:
    lines = [row["plan"] for row in lake.sql("EXPLAIN SELECT * FROM s.t WHERE id = 9").to_pylist()]

    assert lines[0] == "s.t version 1: 0 of 1 files kept"
    assert not any("__lakebed" in line for line in lines)


def test_column_of_a_wide_table_is_suggested_though_it_was_not_bound(lake: Lake) -> None:
    columns = ", ".join(f"column_{n} INT" for n in range(60))
    lake.sql(f"CREATE TABLE s.wide ({columns})")

    assert refusal(lake, "SELECT colum_7 FROM s.wide").hint.startswith("did you mean column_7")


def test_wide_table_gives_the_columns_that_are_asked_for(lake: Lake) -> None:
    lake.sql(f"CREATE TABLE s.wide AS SELECT {', '.join(f'{n} AS c{n}' for n in range(60))}")

    assert lake.sql("SELECT C7 + c8 AS x FROM s.wide WHERE c9 = 9").to_pylist() == [{"x": 15}]
    assert lake.sql("SELECT 1 AS one FROM s.wide").to_pylist() == [{"one": 1}]
    assert lake.sql("SELECT count(*) AS n FROM s.wide WHERE c3 > 0").to_pylist() == [{"n": 1}]
    assert len(lake.sql("SELECT * FROM s.wide").columns) == 60
    assert len(lake.sql("SELECT w FROM s.wide AS w").to_pylist()[0]["w"]) == 60
    assert len(lake.sql("SELECT * FROM s.wide a JOIN s.wide b USING (c1)").columns) == 119


def test_error_while_rows_are_read_has_its_place_too(lake: Lake) -> None:
    error = refusal(lake, "SELECT CAST(name AS INT) FROM s.t")

    assert error.code == "CONVERSION_FAILED"
    assert error.context["character"] == 8


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("SELECT * FROM s.none WHERE n = 'abc'", 32),
        ("SELECT * FROM s.none AS x WHERE x.d < 'soon'", 39),
        ("SELECT d, n = 'abc' AS same FROM s.none", 15),
        ("DELETE FROM s.none WHERE n = 'abc'", 30),
        ("UPDATE s.none SET n = 1 WHERE d IN ('2024-01-31', 'abc')", 51),
    ],
)
def test_text_of_another_type_is_shown_though_no_row_is_met(
    lake: Lake, text: str, column: int
) -> None:
    lake.sql("CREATE TABLE s.none (n INT, d DATE)")

    error = refusal(lake, text)

    assert (error.code, error.context["character"]) == ("CONVERSION_FAILED", column)
