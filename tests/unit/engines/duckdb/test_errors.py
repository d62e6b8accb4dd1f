"""What DuckDB refuses is an error of the tree, with the place in the text where it gives one."""

import pyarrow as pa
import pytest

from lakebed.engines.duckdb.session import Session
from lakebed.model.errors import LakebedError
from lakebed.storage.memory import MemoryStorage
from tests.unit.engines.duckdb.plans import LIMITS

ROWS = pa.table({"amount": [1, 2], "name": ["a", "b"], "s": [{"x": 1}, {"x": 2}]})
LONG = "SELECT " + ", ".join(f"{n} AS c{n}" for n in range(60)) + ", amont FROM t"


@pytest.mark.parametrize(
    ("sql", "code", "place", "hint"),
    [
        ("SELECT amont FROM t", "SQL_UNKNOWN_COLUMN", (1, 8), "did you mean amount?"),
        ("SELECT 1,\n  amont\nFROM t", "SQL_UNKNOWN_COLUMN", (2, 3), "did you mean amount?"),
        (LONG, "SQL_UNKNOWN_COLUMN", (1, LONG.index("amont") + 1), "did you mean amount?"),
        ("SELECT t.amont FROM t", "SQL_UNKNOWN_COLUMN", (1, 8), "column"),
        ("SELECT zzz FROM t", "SQL_UNKNOWN_COLUMN", (1, 8), "such names are"),
        ("SELECT amount FROM t, t u", "SQL_AMBIGUOUS_NAME", (1, 8), "relation.column"),
        ("SELECT * FROM nothing", "SQL_UNKNOWN_NAME", (1, 15), "check the name"),
        ("SELECT uper('x')", "SQL_UNKNOWN_NAME", (1, 8), "did you mean upper?"),
        ("SELECT amount + name FROM t", "SQL_TYPES", (1, 15), "cast"),
        ("SELECT DATE '2020-01-01' < 5", "SQL_TYPES", (1, 8), "cast"),
        ("SELEC 1", "SQL_SYNTAX", (1, 1), "place"),
        ("SELECT amount FROM t WHERE sum(amount) > 1", "SQL_SYNTAX", (1, 28), "subquery"),
        ("SELECT 1 // (amount - 1) FROM t", "DIVISION_BY_ZERO", None, "nullif"),
        ("SELECT 1 % (amount - 1) FROM t", "DIVISION_BY_ZERO", None, "nullif"),
        ("SELECT 9223372036854775807 + amount FROM t", "VALUE_OUT_OF_RANGE", None, "wider"),
        ("SELECT CAST(name AS INT) FROM t", "CONVERSION_FAILED", (1, 8), "TRY_CAST"),
        ("SELECT CAST(name AS INT), gen_random_uuid() FROM t", "CONVERSION_FAILED", (1, 8), "TRY"),
        ("SELECT ?", "SQL_PARAMETERS", None, "value"),
        ("SELECT error('boo')", "QUERY_ERROR", None, "query"),
        ("", "SQL_UNSUPPORTED", None, "SELECT"),
        ("SELECT 1; SELECT 2", "SQL_UNSUPPORTED", None, "SELECT"),
        ("DELETE FROM t", "SQL_UNSUPPORTED", None, "SELECT"),
    ],
)
def test_refusals_have_codes_places_and_hints(
    sql: str, code: str, place: tuple[int, int] | None, hint: str
) -> None:
    with Session(MemoryStorage("e"), LIMITS) as session:
        session.bind_rows("t", ROWS)
        with pytest.raises(LakebedError) as caught:
            session.batches(sql).read_all()

    found = caught.value.context
    assert caught.value.code == code
    assert (found["line"], found["character"]) == place if place else "line" not in found
    assert hint in caught.value.hint


def test_errors_in_the_middle_of_a_stream_are_errors_of_the_tree() -> None:
    sql = "SELECT 1 // (range - 900_000) AS q FROM range(1_000_000)"

    with Session(MemoryStorage("e"), LIMITS) as session:
        rows = session.batches(sql)
        with pytest.raises(LakebedError) as caught:
            rows.read_all()

    assert caught.value.code == "DIVISION_BY_ZERO"
