"""Queries that surely read nothing but the relations they name, told from the engine's own tree.

Whatever is not known here makes a query not plain: it is no error.
"""

from collections.abc import Collection, Iterator
from typing import Any

import orjson

from lakebed.model.functions import is_refused
from lakebed.sql.sandbox import HARMLESS_SOURCES

# Queries, their modifiers, and what they read from; expressions have a class.
_KNOWN = frozenset(
    {
        "SELECT_NODE",
        "SET_OPERATION_NODE",
        "RECURSIVE_CTE_NODE",
        "CTE_NODE",
        "ORDER_MODIFIER",
        "LIMIT_MODIFIER",
        "LIMIT_PERCENT_MODIFIER",
        "DISTINCT_MODIFIER",
        "BASE_TABLE",
        "EMPTY",
        "EXPRESSION_LIST",
        "JOIN",
        "SUBQUERY",
        "TABLE_FUNCTION",
    }
)
_ORDERS = frozenset({"ORDER_DEFAULT", "ASCENDING", "DESCENDING"})


def is_plain(tree: str, relations: Collection[str]) -> bool:
    """`relations` are casefolded names; `tree` is that of one query."""
    found = orjson.loads(tree)
    if found.get("error", True) or len(found["statements"]) != 1:
        return False
    nodes = list(_nodes(found["statements"]))
    listed = [entry for node in nodes for entry in node.get("cte_map", {}).get("map", ())]
    # A name that could be a file's is no name of a WITH query here: it may not be in reach of it.
    names = {str(entry["key"]).casefold() for entry in listed if str(entry["key"]).isidentifier()}
    names.update(relations)
    return all(_is_plain(node, names) for node in nodes)


def _is_plain(node: dict[str, Any], names: Collection[str]) -> bool:
    function = node.get("function_name")
    if function is not None and is_refused(function):
        return False
    kind = node.get("type")
    if "class" in node or not isinstance(kind, str) or kind in _ORDERS:
        return True
    if kind == "BASE_TABLE":
        return _is_known_table(node, names)
    if kind == "TABLE_FUNCTION":
        called = node["function"]
        return called.get("class") == "FUNCTION" and called["function_name"] in HARMLESS_SOURCES
    return kind in _KNOWN


def _is_known_table(node: dict[str, Any], names: Collection[str]) -> bool:
    alone = not (node["schema_name"] or node["catalog_name"])
    return alone and str(node["table_name"]).casefold() in names


def _nodes(tree: object) -> Iterator[dict[str, Any]]:
    waiting = [tree]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            yield part
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)
