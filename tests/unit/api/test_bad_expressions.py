"""Conditions and values are checked against the schema, whether a row is read for them or not."""

from collections.abc import Callable

import pytest

import lakebed

CODES = {"INVALID_EXPRESSION", "SQL_SYNTAX", "SQL_UNKNOWN_COLUMN", "SQL_UNKNOWN_NAME"}


@pytest.fixture
def empty(disk: lakebed.Lake) -> lakebed.Table:
    return disk.create_table("a.t", "n long, word string, s struct<a: int>, x int not null")


@pytest.mark.parametrize(
    "condition",
    [
        "nope = 1",
        "n=1) OR (TRUE",
        "n = (SELECT 1)",
        "count(*) > 0",
        "max(n) > 0",
        "foo(n)",
        "n + 1",
        "nope + 1 > 0",
        "n > 100 AND nope = 1",
        "n > 100 AND (n + 1) LIKE nope",
    ],
)
def test_a_bad_condition_is_refused_though_no_file_is_opened(
    empty: lakebed.Table, condition: str
) -> None:
    for _ in ("without files", "with one that cannot match"):
        before = empty.version
        with pytest.raises(lakebed.LakebedError) as deleting:
            empty.delete(condition)
        with pytest.raises(lakebed.LakebedError) as updating:
            empty.update({"n": 1}, condition)
        assert {deleting.value.code, updating.value.code} <= CODES
        assert empty.version == before
        empty.append([{"n": 1, "x": 1}])


@pytest.mark.parametrize("condition", ["n = 1", "n + 1 > 0", "lower(word) = 'a'", "n IN (1, 2)"])
def test_a_good_condition_on_an_empty_table_changes_nothing(
    empty: lakebed.Table, condition: str
) -> None:
    assert empty.delete(condition).changed is False
    assert empty.update({"n": "n + 1", "x": "NULL"}, condition).changed is False


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("n", "'abc'"),
        ("n", "nope"),
        ("n", "word"),
        ("n", "1.5"),
        ("n", "count(*)"),
        ("x", "3000000000"),
        ("word", "5"),
        ("s.a", "'q'"),
        ("s", "1"),
    ],
)
def test_a_value_that_no_row_can_get_is_refused_though_no_row_is_met(
    empty: lakebed.Table, column: str, value: str
) -> None:
    for condition in (None, "n = 7"):  # without files, then in one where none matches
        with pytest.raises(lakebed.LakebedError) as updating:
            empty.update({column: value}, condition)
        merge = empty.merge([{"id": 7}], "t.n = s.id").when_matched_update({column: value})
        with pytest.raises(lakebed.LakebedError) as merging:
            merge.execute()
        assert updating.value.code == merging.value.code != "INTERNAL"
        if condition is None:
            empty.append([{"n": 1, "x": 1}, {"n": 9, "x": 1}])
    assert empty.version == 1


@pytest.mark.parametrize(
    "call",
    [
        "current_setting('threads')",
        "getenv('HOME')",
        "'HOME'.getenv()",
        "\"getenv\"('HOME')",
        "getvariable('x')",
        "nextval('s')::text",
        "sleep_ms(1)::text",
        "parquet_metadata('x')",
        "read_text('/etc/hosts')",
    ],
)
def test_expressions_call_no_function_that_sql_refuses(empty: lakebed.Table, call: str) -> None:
    empty.append([{"n": 1, "word": "a", "x": 1}])
    rows = [{"n": 1, "word": "b", "x": 2}]
    merge = empty.merge(rows, "t.n = s.n")
    attempts: tuple[Callable[[], object], ...] = (
        lambda: empty.delete(f"word = {call}"),
        lambda: empty.update({"word": call}),
        lambda: empty.update({"n": 5}, f"word = {call}"),
        lambda: empty.overwrite(rows, where=f"word = {call}"),
        lambda: empty.merge(rows, f"t.word = {call}").when_matched_delete().execute(),
        lambda: merge.when_matched_update({"word": call}).execute(),
        lambda: merge.when_matched_delete(condition=f"t.word = {call}").execute(),
    )
    for attempt in attempts:
        with pytest.raises(lakebed.LakebedError) as refused:
            attempt()
        assert refused.value.code == "SQL_UNSUPPORTED"
    with pytest.raises(lakebed.LakebedError):
        empty.scan(where=f"word = {call}").to_arrow()

    assert empty.version == 1
