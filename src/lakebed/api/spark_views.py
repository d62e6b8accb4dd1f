"""Views of the lake in queries of Spark: each one is opened where it stands."""

from typing import TYPE_CHECKING

from lakebed.api.parts import Parts
from lakebed.api.spark_rows import UTC
from lakebed.model.errors import InvalidInput, SqlUnsupported
from lakebed.model.names import TableName, parse_table_name
from lakebed.model.views import View
from lakebed.sql.spark import Path
from lakebed.sql.spark_query import SparkTable, find_spark_tables, with_names
from lakebed.sql.spark_view import Column, SparkView, view_in_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DEEPEST = 20  # views inside each other: more is a circle, or a mistake
# What a view means must not depend on the session.
_NEEDED = {
    "spark.sql.session.timeZone": UTC,
    "spark.sql.ansi.enabled": ("true",),
}


def with_views(parts: Parts, session: "SparkSession", text: str) -> str:
    """The query with the tables of its views in their place."""
    for _ in range(_DEEPEST):
        found = [(t, v) for t in find_spark_tables(text) if (v := _view_of(parts, t)) is not None]
        if not found:
            return text
        _check_session(session, found[0][1])
        queries = [f"({_opened(parts, view, _DEEPEST).query})" for _, view in found]
        pieces = with_names(text, [table for table, _ in found], queries)
        text = "".join(piece + query for piece, query in pieces)
    raise _circle(found[0][1].name)


def _view_of(parts: Parts, table: SparkTable) -> View | None:
    view = parts.views.find(parse_table_name(table.name))
    if view is not None and (table.version, table.timestamp, table.ref) != (None, None, None):
        raise SqlUnsupported(
            f"{view.name} is a view: it has no versions",
            hint="ask the tables it reads for a version",
        )
    return view


def _opened(parts: Parts, view: View, deepest: int) -> SparkView:
    if deepest == 0:
        raise _circle(view.name)

    def columns_of(path: Path) -> list[Column]:
        name = parse_table_name(".".join(path))
        inner = parts.views.find(name)
        if inner is not None:
            return list(_opened(parts, inner, deepest - 1).columns)
        head = parts.catalog.find(name)
        fields = parts.catalog.state(head, head.state_id).schema.fields
        return [(field.name, field.type) for field in fields]

    return view_in_spark(view, columns_of)


def _circle(name: TableName) -> InvalidInput:
    return InvalidInput(
        f"view {name} leads through more than {_DEEPEST} views",
        hint="a view must not read itself, directly or through others",
    )


def _check_session(session: "SparkSession", view: View) -> None:
    for name, good in _NEEDED.items():
        if str(session.conf.get(name)) not in good:
            raise SqlUnsupported(
                f"view {view.name} could mean something else where {name} is not {good[0]}",
                hint=f'sp.session.conf.set("{name}", "{good[0]}"), or lake.sql()',
            )
