"""Anything for any argument of any call: it works, or it is an error of the tree."""

import math
from collections.abc import Callable
from datetime import date
from typing import Any

import pytest

import lakebed

GARBAGE: tuple[Any, ...] = (
    *(None, True, 0, -1, 1, 2**70, -(2**63), 1.5, math.nan, math.inf, b"x"),
    *("", " a", "a", "a.b", "a..b", "..", "%2e%2e.x", "\x00", "\ud800", "x" * 300, "🎉"),
    *("'; DROP TABLE tables; --", "id long", "id = 1", "id >", "delta"),
    *((), ("a",), ("a", 1), ("a", 2**63), [], [None], [1], ["a"], ["id"], ["\ud800"], [[1]]),
    *({}, {"a": 1}, {"a": None}, {1: 2}, {"\ud800": "x"}, {"k": "\ud800"}, {"k": "v"}, [{"id": 1}]),
    *(object(), range(3), date(2020, 1, 1), print),
)
Call = Callable[[lakebed.Lake, lakebed.Table, Any, str], object]
NEW = "id long, p string"

OF_LAKE: dict[str, Call] = {
    "open": lambda _l, _t, g, _n: None if isinstance(g, str) and g.strip() else lakebed.open(g),
    "open(settings)": lambda _l, _t, g, _n: lakebed.open(":memory:", settings=g).close(),
    "create_namespace": lambda lake, _t, g, _n: lake.create_namespace(g),
    "create_namespace(properties)": lambda lake, _t, g, n: lake.create_namespace(n, g),
    "namespaces": lambda lake, _t, g, _n: lake.namespaces(g),
    "namespace_properties": lambda lake, _t, g, _n: lake.namespace_properties(g),
    "set_namespace_properties": lambda lake, _t, g, _n: lake.set_namespace_properties("s", g),
    "drop_namespace": lambda lake, _t, g, _n: lake.drop_namespace(g),
    "create_table": lambda lake, _t, g, _n: lake.create_table(g, NEW),
    "create_table(schema)": lambda lake, _t, g, n: lake.create_table(n, g),
    "create_table(partition_by)": lambda lake, _t, g, n: lake.create_table(n, NEW, partition_by=g),
    "create_table(sort_by)": lambda lake, _t, g, n: lake.create_table(n, NEW, sort_by=g),
    "create_table(primary_key)": lambda lake, _t, g, n: lake.create_table(n, NEW, primary_key=g),
    "create_table(properties)": lambda lake, _t, g, n: lake.create_table(n, NEW, properties=g),
    "create_table(formats)": lambda lake, _t, g, n: lake.create_table(n, NEW, formats=g),
    "create_table(comment)": lambda lake, _t, g, n: lake.create_table(n, NEW, comment=g),
    "table": lambda lake, _t, g, _n: lake.table(g),
    "has_table": lambda lake, _t, g, _n: lake.has_table(g),
    "tables": lambda lake, _t, g, _n: lake.tables(g),
    "rename_table": lambda lake, _t, g, _n: lake.rename_table(g, "s.q"),
    "rename_table(new)": lambda lake, table, g, _n: lake.rename_table(table.name, g),
    "drop_table": lambda lake, _t, g, _n: lake.drop_table(g),
    "purge_table": lambda lake, _t, g, _n: lake.purge_table(g),
    "publish": lambda lake, _t, g, _n: lake.publish(g),
    "check": lambda lake, _t, g, _n: lake.check(g),
    "set_setting": lambda lake, _t, g, _n: lake.set_setting(g, 1),
    "set_setting(value)": lambda lake, _t, g, _n: lake.set_setting("commit.retries", g),
    "transaction.table": lambda lake, _t, g, _n: lake.transaction().table(g),
}
OF_TABLE: dict[str, Call] = {
    "append": lambda _l, table, g, _n: table.append(g),
    "overwrite": lambda _l, table, g, _n: table.overwrite(g),
    "overwrite(where)": lambda _l, table, g, _n: table.overwrite([], where=g),
    "overwrite(partitions)": lambda _l, table, g, _n: table.overwrite([], partitions=g),
    "set_properties": lambda _l, table, g, _n: table.set_properties(g),
    "set_properties(removed)": lambda _l, table, g, _n: table.set_properties(removed=g),
    "set_formats": lambda _l, table, g, _n: table.set_formats(g),
    "scan(columns)": lambda _l, table, g, _n: table.scan(columns=g).to_arrow(),
    "scan(where)": lambda _l, table, g, _n: table.scan(where=g).to_arrow(),
    "scan(version)": lambda _l, table, g, _n: table.scan(version=g).to_arrow(),
    "scan(timestamp)": lambda _l, table, g, _n: table.scan(timestamp=g).to_arrow(),
    "history": lambda _l, table, g, _n: table.history(g),
    "files": lambda _l, table, g, _n: table.files(version=g),
    "add_column": lambda _l, table, g, _n: table.alter().add_column(g, "int"),
    "add_column(kind)": lambda _l, table, g, _n: table.alter().add_column("q", g),
    "add_column(doc)": lambda _l, table, g, _n: table.alter().add_column("q", "int", doc=g),
    "set_comment": lambda _l, table, g, _n: table.alter().set_comment(g, "x"),
}
OPTIONS = ("message", "author", "idempotency_key", "txn", "isolation", "publish", "summary")


def with_option(name: str) -> Call:
    option: Any = name
    return lambda _l, table, g, _n: table.append([{"id": 1}], **{option: g})


CALLS = {**OF_LAKE, **OF_TABLE, **{f"append({name})": with_option(name) for name in OPTIONS}}


@pytest.mark.parametrize("call", CALLS)
def test_garbage_is_an_error_of_the_tree(lake: lakebed.Lake, call: str) -> None:
    table = lake.create_table("s.t", NEW, partition_by=["p"])
    for number, garbage in enumerate(GARBAGE):
        before = table.version
        try:
            CALLS[call](lake, table, garbage, f"s.new{number}")
        except lakebed.LakebedError:
            refused = True
        else:
            refused = False
        assert not refused or table.version == before, "refused, and yet something was written"
