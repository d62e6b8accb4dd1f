"""Whatever the text, the parser answers in time: with statements or with a LakebedError."""

import string
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lakebed.model.errors import LakebedError, SqlError
from lakebed.sql.parse import parse_script
from tests.unit.sql.examples import STATEMENTS
from tests.unit.sql.queries import QUERIES

WORDS = sorted({word for text in (*STATEMENTS, *QUERIES) for word in text.split()})
MARKS = [*"()[]{}<>,;.:?@$#'\"`*+-/\\=|&%^~!", "::", "=>", "--", "/*", "*/", "$$", "e'", "\n"]
_LONGEST_S = 20.0  # the machine may be busy; text that blows up takes minutes


def parses(text: str) -> bool:
    begun = time.monotonic()
    try:
        parse_script(text)
    except LakebedError:
        return False
    finally:
        assert time.monotonic() - begun < _LONGEST_S
    return True


@given(st.lists(st.sampled_from(WORDS) | st.sampled_from(MARKS), max_size=40))
@settings(max_examples=150, deadline=None)
def test_random_words_never_crash_the_parser(words: list[str]) -> None:
    parses(" ".join(words))


@given(st.text(max_size=60))
@example("\ud800")
@example("SELECT '\x00'")
@example("SELECT 1 FROM t@")
@example("\ufeffSELECT 1")
@settings(max_examples=150, deadline=None)
def test_random_text_never_crashes_the_parser(text: str) -> None:
    parses(text)
    parses(f"SELECT {text} FROM t")


@given(st.data())
@settings(max_examples=250, deadline=None)
def test_mutations_of_statements_never_crash_the_parser(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from([*STATEMENTS, *QUERIES]))
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(len(text), start + 20)))
        new = data.draw(
            st.sampled_from(["", *WORDS, *MARKS]) | st.text(string.printable, max_size=3)
        )
        text = text[:start] + new + text[end:]
    parses(text)


@pytest.mark.parametrize("statement", STATEMENTS)
def test_every_beginning_of_a_statement_is_read_or_refused(statement: str) -> None:
    words = statement.split(" ")
    for count in range(len(words)):
        parses(" ".join(words[:count]))


@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        ("(", ")"),
        ("[", "]"),
        ("{'a': ", "}"),
        ("f(", ")"),
        ("CASE WHEN ", " THEN 1 END"),
        ("(SELECT ", ")"),
        ("NOT ", ""),
        ("- ", ""),
        ("~", ""),
        ("@", ""),
        ("lambda x: ", ""),
        ("EXISTS (FROM ", ")"),
        ("CAST(", " AS INT)"),
        ("1 IN (", ")"),
        ("INTERVAL ", ""),
        ("a.", ""),
        ("x -> ", ""),
        ("1 + ", ""),
        ("a AND ", ""),
        ("a::STRUCT(b ", ")"),
        ("DISTINCT ", ""),
        ("COLUMNS(", ")"),
        ("ARRAY[", "]"),
        ("x BETWEEN ", " AND 1"),
    ],
)
def test_deep_nesting_is_refused_in_time(opening: str, closing: str) -> None:
    for depth in (10, 50, 1000):
        parses(f"SELECT {opening * depth}1{closing * depth}")
        parses(f"SELECT {opening * depth}")
        parses(f"UPDATE t SET a = {opening * depth}1{closing * depth}")


@pytest.mark.parametrize(
    ("head", "opening", "closing", "tail"),
    [
        ("SELECT * FROM ", "(", ")", "t"),
        ("SELECT * FROM ", "(SELECT * FROM ", ")", "t"),
        ("SELECT * FROM ", "(t JOIN ", " ON true)", "t"),
        ("", "EXPLAIN ", "", "SELECT 1"),
        ("", "(", ")", "SELECT 1"),
        ("", "WITH x AS (", ") SELECT 1", "SELECT 1"),
        ("", "FROM ", "", "t"),
        ("", "PIVOT (", ") ON a USING sum(b)", "FROM t"),
        ("CREATE TABLE t (a ", "STRUCT<a: ", ">", "INT"),
        ("CREATE TABLE t (a ", "LIST(", ")", "INT"),
        ("CALL p(", "[", "]", "1"),
        ("SELECT 1", " UNION SELECT 1", "", ""),
    ],
)
def test_deep_statements_are_refused_in_time(
    head: str, opening: str, closing: str, tail: str
) -> None:
    for depth in (10, 50, 1000):
        parses(f"{head}{opening * depth}{tail}{closing * depth}")


def test_thirty_levels_are_fine() -> None:
    assert parses("SELECT " + "(" * 30 + "1" + ")" * 30)
    assert parses("SELECT * FROM " + "(SELECT * FROM " * 30 + "t" + ")" * 30)


def test_long_statements_are_read_in_time() -> None:
    assert parses("SELECT " + " AND ".join(["a = 1"] * 2000) + " FROM t")
    assert parses("FROM t WHERE " + " OR ".join([f"a = {n}" for n in range(2000)]))
    assert parses("FROM t WHERE a IN (" + ", ".join(map(str, range(5000))) + ")")
    assert parses("SELECT " + ", ".join(f"c{n} + 1 AS d{n}" for n in range(2000)) + " FROM t")


def test_script_of_many_statements_is_read() -> None:
    statements = parse_script(";\n".join(STATEMENTS))

    assert len(statements) == len(STATEMENTS)


@pytest.mark.parametrize("given", [None, 5, b"SELECT 1", ["SELECT 1"]])
def test_what_is_no_text_is_refused(given: object) -> None:
    with pytest.raises(SqlError, match="must be text"):
        parse_script(given)  # type: ignore[arg-type]
