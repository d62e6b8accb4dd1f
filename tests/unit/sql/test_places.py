"""Errors of the SQL front show where in the text they are."""

import pytest

from lakebed.model.errors import SqlError
from lakebed.sql.parse import parse_script


def test_error_shows_statement_line_column_and_place() -> None:
    with pytest.raises(SqlError) as refused:
        parse_script("SELECT 1;\n\nSELECT *\n  FROM t WHERE (a = 1;\nSELECT 2")

    error = refused.value
    assert error.code == "SQL_SYNTAX"
    assert error.context == {"statement": 2, "line": 4, "character": 22}
    assert str(error).splitlines()[1:] == ["    FROM t WHERE (a = 1;", " " * 23 + "^"]
    assert error.hint


@pytest.mark.parametrize(
    ("sql", "place", "message"),
    [
        ("SELECT 'abc", 8, "not closed"),
        ('SELECT "abc', 8, "not closed"),
        ("SELECT /* abc", 8, "not closed"),
        ("SELEC 1", 1, "expected a statement"),
        ("CREATE TABLE t (a INT b TEXT)", 23, "expected"),
        ("SELECT a FROM t WHERE a = = 1", 27, "missing"),
        ("SELECT € FROM t", 8, "unexpected character"),
        ("INSERT t VALUES (1)", 8, "expected INTO"),
    ],
)
def test_error_points_at_the_place(sql: str, place: int, message: str) -> None:
    with pytest.raises(SqlError, match=message) as refused:
        parse_script(sql)

    assert refused.value.context["character"] == place
