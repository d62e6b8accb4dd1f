"""Bad arguments are refused by an error of the tree, with a hint, and nothing is written."""

import datetime as dt
from collections.abc import Iterator
from typing import Any

import pytest

import lakebed
from lakebed.model.errors import (
    InvalidExpression,
    InvalidInput,
    InvalidSchema,
    InvalidSetting,
    VersionNotFound,
)

LONG = "9" * 5000


@pytest.fixture
def table(lake: lakebed.Lake) -> Iterator[lakebed.Table]:
    """A table that no test here may change."""
    table = lake.create_table("a.t", "id long not null, p string", partition_by=["p"])
    table.append([{"id": 1, "p": "x"}])
    yield table
    assert (table.version, table.row_count) == (1, 1)
    assert lake.check().notes == []


@pytest.mark.parametrize(
    ("text", "character"),
    [
        ("", 1),
        ("  ", 3),
        ("id", 3),
        ("id bogus", 4),
        ("id long,", 9),
        (", id long", 1),
        ("id long name string", 9),
        ("id list<", 9),
        ("id list<int", 12),
        ("id struct<>", 11),
        ("id long; drop table x", 8),
        ("'id' long", 1),
        ("id long not", 12),
        ("id long comment 5", 17),
        ("id decimal(5)", 13),
        (f"id decimal({LONG},0)", 12),
        ("id long, x\0 long", 11),
    ],
)
def test_a_bad_schema_text_is_refused_by_position(
    lake: lakebed.Lake, text: str, character: int
) -> None:
    with pytest.raises(InvalidSchema, match=f"character {character}:") as refused:
        lake.create_table("a.t", text)

    assert refused.value.context["position"] == character - 1
    assert refused.value.hint
    assert lake.tables() == []


@pytest.mark.parametrize(
    "schema",
    [
        None,
        5,
        {},
        b"id long",
        [],
        [5],
        [{}],
        [{5: 1}],
        [{"a": None}],
        "id decimal(39,0)",
        "id decimal(5,6)",
        "id fixed(0)",
        "id variant",
        "id long comment '\ud800'",
        "id " + "list<" * 100 + "int" + ">" * 100,
    ],
)
def test_what_is_no_schema_is_refused(lake: lakebed.Lake, schema: object) -> None:
    with pytest.raises(InvalidInput):
        lake.create_table("a.t", schema)

    assert lake.tables() == []


@pytest.mark.parametrize(
    "option",
    [
        {"partition_by": "id"},
        {"partition_by": 5},
        {"partition_by": [5]},
        {"partition_by": ["nope"]},
        {"partition_by": ["day(id)"]},
        {"partition_by": ["id", "id"]},
        {"partition_by": ["bucket(0, id)"]},
        {"partition_by": [f"bucket({LONG}, id)"]},
        {"sort_by": [5]},
        {"sort_by": ["nope"]},
        {"primary_key": "id"},
        {"primary_key": [5]},
        {"primary_key": ["nope"]},
        {"primary_key": ["id", "id"]},
        {"comment": 5},
        {"comment": "\0"},
        {"comment": "\ud800"},
        {"formats": ""},
        {"formats": []},
        {"formats": 5},
        {"formats": "delta,hudi"},
        {"properties": {"delta.appendOnly": "true"}},
        {"isolation": "none"},
        {"bogus": 1},
    ],
    ids=lambda option: str(option)[:40],
)
def test_a_table_is_not_created_with_a_bad_option(
    lake: lakebed.Lake, option: dict[str, Any]
) -> None:
    with pytest.raises(InvalidInput) as refused:
        lake.create_table("a.t", "id long", **option)

    assert refused.value.hint
    assert lake.tables() == []


@pytest.mark.parametrize(
    "option",
    [
        {"message": 5},
        {"message": ""},
        {"message": "\0"},
        {"message": "\ud800"},
        {"message": "x" * 100_001},
        {"author": b"ada"},
        {"idempotency_key": 5},
        {"idempotency_key": "\ud800"},
        {"txn": 5},
        {"txn": ("app",)},
        {"txn": ("app", "1")},
        {"txn": ("app", True)},
        {"txn": ("app", -1)},
        {"txn": ("app", 2**63)},
        {"txn": ("", 1)},
        {"txn": (5, 1)},
        {"isolation": "snapshot"},
        {"isolation": []},
        {"publish": True},
        {"publish": "never"},
        {"summary": "text"},
        {"summary": {"a": 1}},
        {"summary": {"": "x"}},
        {"summary": {"\ud800": "x"}},
        {"summary": {"a": "\0"}},
        {"summary": {"operation": "append"}},
        {"summary": {"added_rows": "9"}},
        {"summary": {"total-records": "9"}},
        {"bogus": 1},
    ],
    ids=lambda option: str(option)[:40].encode("ascii", "backslashreplace").decode(),
)
def test_a_write_with_a_bad_option_writes_nothing(
    table: lakebed.Table, option: dict[str, Any]
) -> None:
    with pytest.raises(InvalidInput) as refused:
        table.append([{"id": 2}], **option)

    assert refused.value.hint


@pytest.mark.parametrize(
    "where",
    [
        "",
        " ",
        5,
        "id =",
        "id = 1; DROP TABLE x",
        "nope = 1",
        "id = 'x'",
        "id",
        "1",
        "(((",
        "(" * 5000 + "id = 1" + ")" * 5000,
        "id in ()",
        "-- nothing",
        "\0",
        "p = '\ud800'",
        "id = (select 1)",
        "upper(p) = 'X'",
    ],
    ids=lambda where: str(where)[:20].encode("ascii", "backslashreplace").decode(),
)
def test_a_condition_that_is_none_is_refused(table: lakebed.Table, where: str) -> None:
    with pytest.raises(InvalidExpression):
        table.scan(where=where).to_arrow()
    with pytest.raises(InvalidInput):  # the engine understands more, but no row to write matches
        table.overwrite([{"id": 2}], where=where)


@pytest.mark.parametrize("columns", ["id", 5, [5], ["nope"], ["id", "ID"], [None]])
def test_columns_that_are_none_are_refused(table: lakebed.Table, columns: Any) -> None:
    with pytest.raises(InvalidInput):
        table.scan(columns=columns).to_arrow()


@pytest.mark.parametrize("version", ["1", 1.0, True, 2**70])
def test_a_version_is_a_whole_number(table: lakebed.Table, version: Any) -> None:
    with pytest.raises(InvalidInput, match="version"):
        table.scan(version=version)


@pytest.mark.parametrize("version", [-1, 2, 10**6])
def test_a_missing_version_names_those_there_are(table: lakebed.Table, version: int) -> None:
    with pytest.raises(VersionNotFound, match=f"no version {version}") as missing:
        table.scan(version=version).to_arrow()

    assert missing.value.hint == "its versions are 0 to 1"
    assert missing.value.context["version"] == version


@pytest.mark.parametrize("timestamp", ["", "yesterday", True, 1.5, 2**70, dt.date(2026, 1, 1)])
def test_a_time_that_is_none_is_refused(table: lakebed.Table, timestamp: Any) -> None:
    with pytest.raises(InvalidInput):
        table.scan(timestamp=timestamp)


@pytest.mark.parametrize("timestamp", [0, -5, "2001-01-01", dt.datetime.min.replace(tzinfo=dt.UTC)])
def test_a_time_before_the_table_names_its_first_commit(
    table: lakebed.Table, timestamp: Any
) -> None:
    first = table.history()[-1].time

    with pytest.raises(VersionNotFound, match="did not exist yet") as missing:
        table.scan(timestamp=timestamp).to_arrow()

    assert first.isoformat(timespec="milliseconds") in missing.value.hint


def test_a_version_and_a_time_at_once_are_refused(table: lakebed.Table) -> None:
    with pytest.raises(InvalidInput, match="not both"):
        table.scan(version=0, timestamp="2026-01-01").to_arrow()


@pytest.mark.parametrize("limit", [-1, "5", None, True, 2**70])
def test_a_history_has_a_limit_that_is_a_number(table: lakebed.Table, limit: Any) -> None:
    with pytest.raises(InvalidInput, match="limit"):
        table.history(limit)


@pytest.mark.parametrize(
    "properties",
    [
        5,
        "abc",
        [("a", "b")],
        {5: "a"},
        {"a": None},
        {"a": ["b"]},
        {"": "x"},
        {" a": "x"},
        {"a\0": "x"},
        {"a": "\0"},
        {"\ud800": "x"},
        {"a": "\ud800"},
        {"a" * 1025: "x"},
        {"a": "x" * 65_537},
    ],
    ids=lambda given: str(given)[:20].encode("ascii", "backslashreplace").decode(),
)
def test_properties_are_plain_text(
    lake: lakebed.Lake, table: lakebed.Table, properties: Any
) -> None:
    with pytest.raises(InvalidSetting):
        table.set_properties(properties)
    with pytest.raises(InvalidSetting):
        lake.create_namespace("n", properties)
    with pytest.raises(InvalidSetting):
        lake.set_namespace_properties("a", properties)

    assert lake.namespace_properties("a") == {}
    assert lake.namespaces() == ["a"]


@pytest.mark.parametrize(
    "properties",
    [
        {"write.parquet.compression-codec": "rar"},
        {"write.target-file-size-bytes": "12"},
        {"commit.retries": "5"},
        {"delta.minReaderVersion": "3"},
        {"lakebed.x": "1"},
        {"comment": "x"},
        {"format-version": "3"},
        {"write.metadata.path": "/elsewhere"},
    ],
    ids=str,
)
def test_properties_with_a_meaning_are_checked(
    table: lakebed.Table, properties: dict[str, str]
) -> None:
    with pytest.raises(InvalidSetting) as refused:
        table.set_properties(properties)

    assert refused.value.hint


@pytest.mark.parametrize("removed", ["owner", 5, [5]])
def test_removed_properties_are_a_list_of_names(table: lakebed.Table, removed: Any) -> None:
    with pytest.raises(InvalidSetting):
        table.set_properties({"a": "b"}, removed=removed)


def test_a_change_of_nothing_is_refused(lake: lakebed.Lake, table: lakebed.Table) -> None:
    with pytest.raises(lakebed.NoChanges):
        table.set_properties()
    with pytest.raises(lakebed.NoChanges):
        table.alter().commit()
    tx = lake.transaction()
    tx.table("a.t").scan().to_arrow()
    with pytest.raises(lakebed.NoChanges):
        tx.commit()


@pytest.mark.parametrize("kind", ["bogus", "", 5, "list<int", "int not null", "\ud800"])
def test_a_column_of_no_type_is_not_added(table: lakebed.Table, kind: Any) -> None:
    with pytest.raises(InvalidSchema):
        table.alter().add_column("new", kind)


@pytest.mark.parametrize("doc", [5, "\0", "\ud800"])
def test_a_comment_is_plain_text(table: lakebed.Table, doc: Any) -> None:
    with pytest.raises(InvalidSchema):
        table.alter().add_column("new", "int", doc=doc)
    with pytest.raises(InvalidSchema):
        table.alter().set_comment("id", doc)


@pytest.mark.parametrize(
    "rows",
    [
        5,
        "id",
        {"id": 2},
        [5],
        [{"id": "2"}],
        [{"id": None}],
        [{}],
        [{"id": 2, "bogus": 1}],
        [{"id": 2}, None],
        [{"id": 2, "ID": 3}],
        [{"id": 2**63}],
        [{"id": 2, "p": 5}],
        [{"id": 2, "p": "\ud800"}],
    ],
    ids=lambda rows: str(rows)[:20].encode("ascii", "backslashreplace").decode(),
)
def test_rows_that_do_not_fit_are_refused(table: lakebed.Table, rows: Any) -> None:
    with pytest.raises(InvalidInput) as refused:
        table.append(rows)

    assert refused.value.hint
