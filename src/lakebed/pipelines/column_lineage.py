"""Which columns of its inputs a column of a result is made from, told by Spark's analysed plan.

Where the plan cannot be reached (Spark Connect), or holds what has no such answer, nothing is told.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import orjson
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

Columns = dict[str, tuple[str, ...]]
_ALIAS = "org.apache.spark.sql.catalyst.expressions.Alias"
_ATTRIBUTE = "org.apache.spark.sql.catalyst.expressions.AttributeReference"
# Nodes that make columns in a way that expressions do not tell.
_OPAQUE = ("Union", "Except", "Intersect", "Generate", "Expand", "Pandas", "Arrow", "Python", "Map")
_PLANS = ("plans.logical.", "execution.")


def column_lineage(result: DataFrame, inputs: Mapping[str, DataFrame]) -> dict[str, Columns]:
    """{input: {column of the result: columns of the input}}"""
    try:
        plan = orjson.loads(_analysed(result).toJSON())
        known = {
            number: (name, column)
            for name, frame in inputs.items()
            for column, number in _output(frame)
        }
        wanted = list(_output(result))
    except (AttributeError, Py4JError, PySparkException, ValueError):
        return {}
    made = dict(_aliases(plan))
    if made.pop(_UNKNOWN, None):
        return {}
    found: dict[str, dict[str, list[str]]] = {}
    for column, number in wanted:
        for source in _sources(number, made, known.keys()):
            given, name = known[source]
            told = found.setdefault(given, {}).setdefault(column, [])
            if name not in told:
                told.append(name)
    return {
        given: {column: tuple(sorted(names)) for column, names in told.items()}
        for given, told in found.items()
    }


_UNKNOWN = -1


def _analysed(frame: DataFrame) -> Any:
    return frame._jdf.queryExecution().analyzed()  # noqa: SLF001 - no other way to the plan


def _output(frame: DataFrame) -> Iterator[tuple[str, int]]:
    """Each column with the number that plans know it by."""
    listed = _analysed(frame).output()
    for place in range(listed.size()):
        attribute = listed.apply(place)
        yield attribute.name(), attribute.exprId().id()


def _aliases(plan: object) -> Iterator[tuple[int, set[int]]]:
    """(a made column, what it is made from), by number; _UNKNOWN: a node does not tell."""
    if isinstance(plan, dict):
        kind = str(plan.get("class", ""))
        if any(p in kind for p in _PLANS) and kind.rpartition(".")[2].startswith(_OPAQUE):
            yield _UNKNOWN, {0}
        for value in plan.values():
            yield from _aliases(value)
    elif isinstance(plan, list):
        if plan and isinstance(plan[0], dict) and plan[0].get("class") == _ALIAS:
            yield plan[0]["exprId"]["id"], set(_references(plan))
        for value in plan:
            yield from _aliases(value)


def _references(expression: list[Any]) -> Iterator[int]:
    for node in expression:
        if isinstance(node, dict) and node.get("class") == _ATTRIBUTE:
            yield node["exprId"]["id"]


def _sources(number: int, made: Mapping[int, set[int]], known: Collection[int]) -> set[int]:
    """The columns of inputs at the end of the way."""
    found: set[int] = set()
    waiting, seen = [number], set[int]()
    while waiting:
        at = waiting.pop()
        if at in seen:
            continue
        seen.add(at)
        if at in known:
            found.add(at)
        else:
            waiting += made.get(at, ())
    return found
