"""Names of tables, namespaces and columns: hostile ones are refused or harmless, never a path."""

from collections.abc import Callable
from pathlib import Path

import pytest

import lakebed
from lakebed.model.errors import InvalidName, InvalidSchema

REFUSED = [
    "..",
    ".",
    "",
    " a",
    "a ",
    "a/b",
    "a\\b",
    "/etc/passwd",
    "%2e%2e",
    "%2E%2e",
    ".%2e",
    "%252e%252e",
    "a%2F..%2Fb",
    "\0",
    "a\0b",
    "a\nb",
    "x" * 300,
    "é" * 128,
    "\ud800",
]
HARMLESS = [
    "'; DROP TABLE x; --",
    '"quoted"',
    "😀",
    "%",
    "a%2fb",
    "_delta_log",
    "metadata",
    "a:b",
    "a?b#c",
    "x" * 255,
    "😀" * 63,
    "select",
]


@pytest.mark.parametrize("name", REFUSED)
def test_a_name_that_is_no_name_is_refused_everywhere(lake: lakebed.Lake, name: str) -> None:
    calls: list[Callable[[], object]] = [
        lambda: lake.create_table(f"ns.{name}", "id long"),
        lambda: lake.create_table(f"{name}.t", "id long"),
        lambda: lake.create_namespace(name),
        lambda: lake.table(f"ns.{name}"),
        lambda: lake.has_table(f"ns.{name}"),
        lambda: lake.tables(name),
        lambda: lake.drop_table(f"ns.{name}"),
        lambda: lake.rename_table("a.t", f"ns.{name}"),
    ]

    for call in calls:
        with pytest.raises(InvalidName):
            call()
    assert (lake.namespaces(), lake.tables()) == ([], [])


def test_unusual_names_stay_below_the_warehouse(disk: lakebed.Lake, tmp_path: Path) -> None:
    for name in HARMLESS:
        table = disk.create_table(f"{name}.{name}", [{"id": 1}])

        assert Path(table.location).parent.parent == tmp_path / "lake" / "warehouse"
        assert disk.table(f"{name}.{name}").to_arrow().num_rows == 1
        assert disk.tables(name) == [f"{name}.{name}"]
    assert disk.namespaces() == sorted(HARMLESS)
    assert disk.check().clean


@pytest.mark.parametrize("name", [5, None, b"a.t", ("a", "t")])
def test_a_name_that_is_not_text_is_refused(lake: lakebed.Lake, name: object) -> None:
    with pytest.raises(InvalidName, match="must be text"):
        lake.create_table(name, "id long")  # type: ignore[arg-type]
    with pytest.raises(InvalidName, match="must be text"):
        lake.namespace_properties(name)  # type: ignore[arg-type]


def test_a_table_needs_a_namespace(lake: lakebed.Lake) -> None:
    with pytest.raises(InvalidName, match="no namespace"):
        lake.create_table("orders", "id long")


def test_names_too_long_together_are_refused(disk: lakebed.Lake) -> None:
    with pytest.raises(InvalidName, match="characters"):
        disk.create_table(".".join(["x" * 100] * 8), "id long")

    assert disk.tables() == []


@pytest.mark.parametrize(
    "name", ["", " a", "a.b", "\0", "\ud800", "x" * 256, "_row_id", "_FILE", "_pos", "_deleted"]
)
def test_a_column_name_that_is_no_name_is_refused(lake: lakebed.Lake, name: str) -> None:
    table = lake.create_table("a.t", "id long")

    with pytest.raises((InvalidName, InvalidSchema)):  # a dot leads to a struct's member
        table.alter().add_column(name, "int")
    with pytest.raises(InvalidName):
        lake.create_table("a.u", [{name: 1}])
    assert (table.version, lake.tables()) == (0, ["a.t"])


@pytest.mark.parametrize("name", ["'; DROP TABLE x; --", "a/b", "😀", "select", "x" * 255, "a=b"])
def test_an_unusual_column_name_works(lake: lakebed.Lake, name: str) -> None:
    table = lake.create_table("a.t", [{name: 1}], partition_by=[name])
    table.append([{name: 2}])

    quoted = name.replace('"', '""')
    assert table.scan(where=f'"{quoted}" = 2').to_arrow().to_pylist() == [{name: 2}]
    assert lake.check().clean


@pytest.mark.parametrize(
    "schema",
    [
        "a long, A long",
        "s struct<b int, B int>",
        "straße int, STRASSE int",
        "a long, a string",
        "name long, name string",
        "s struct<b int, b string>",
    ],
)
def test_columns_that_differ_in_case_only_or_not_at_all_are_refused(
    lake: lakebed.Lake, schema: str
) -> None:
    with pytest.raises(InvalidSchema, match="differ only in case"):
        lake.create_table("a.t", schema)


def test_a_column_added_in_another_case_is_refused(lake: lakebed.Lake) -> None:
    table = lake.create_table("a.t", "id long")

    with pytest.raises(InvalidSchema, match="already"):
        table.alter().add_column("ID", "int")


def test_a_misspelt_table_gets_a_suggestion(lake: lakebed.Lake) -> None:
    lake.create_table("sales.orders", "id long")

    with pytest.raises(lakebed.TableNotFound) as missing:
        lake.table("sales.order")

    assert missing.value.hint == "did you mean sales.orders?"
