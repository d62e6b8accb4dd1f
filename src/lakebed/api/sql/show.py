"""SHOW and DESCRIBE: what there is, as rows."""

import fnmatch

import pyarrow as pa

from lakebed.api.sql.columns import columns_of
from lakebed.api.sql.context import Context
from lakebed.api.sql.result import Result
from lakebed.api.sql.select import rows_of
from lakebed.api.sql.text import create_text, view_text
from lakebed.model.errors import InvalidInput
from lakebed.sql.query import Reference, Select
from lakebed.sql.statements import Describe, DescribeNamespace, Show, ShowCreate, ShowProperties

_TEXT = pa.string()
_COLUMNS = pa.schema(
    [
        ("column", _TEXT),
        ("type", _TEXT),
        ("nullable", pa.bool_()),
        ("key", pa.bool_()),
        ("comment", _TEXT),
    ]
)


def run_show(context: Context, statement: Show) -> Result:
    where = ".".join(statement.namespace or context.namespace) or None
    match statement.what:
        case "namespaces":
            inside = ".".join(statement.namespace) if statement.namespace else None
            return _listed("namespace", context.lake.namespaces(inside), statement.pattern)
        case "views":
            names = [str(v.name) for v in context.lake.views(where)]
            return _listed("view", names, statement.pattern)
        case "tables":
            return _listed("table", context.lake.tables(where), statement.pattern)


def _listed(what: str, names: list[str], pattern: str | None) -> Result:
    kept = [n for n in names if pattern is None or _is_like(n.rpartition(".")[2], pattern)]
    return Result(pa.table({what: pa.array(kept, _TEXT)}))


def _is_like(name: str, pattern: str) -> bool:
    glob = pattern.replace("%", "*").replace("_", "?")
    return fnmatch.fnmatchcase(name.casefold(), glob.casefold())


def run_show_create(context: Context, statement: ShowCreate) -> Result:
    name = context.full(statement.name)
    view = context.parts.views.find(name)
    text = view_text(view) if view is not None else create_text(context.lake.table(str(name)))
    return Result(pa.table({"statement": pa.array([text], _TEXT)}))


def run_show_properties(context: Context, statement: ShowProperties) -> Result:
    properties = context.lake.table(context.text(statement.name)).properties
    shown = {k: v for k, v in properties.items() if statement.property in (None, k)}
    return _pairs("property", "value", shown)


def run_describe(context: Context, statement: Describe) -> Result:
    if context.parts.views.find(context.full(statement.name)) is not None:
        return _describe_view(context, statement)
    table = context.lake.table(context.text(statement.name))
    fields = list(table.schema.fields)
    if statement.path:
        found = table.schema.find(statement.path)
        if found is None:
            raise InvalidInput(
                f"there is no column {'.'.join(statement.path)!r}",
                hint=f"the columns are: {', '.join(f.name for f in fields)}",
            )
        fields = [found]
    key = set(table.schema.primary_key)
    rows: list[dict[str, object]] = [
        {
            "column": f.name,
            "type": str(f.type),
            "nullable": not f.required,
            "key": f.id in key,
            "comment": f.doc,
        }
        for f in fields
    ]
    if statement.extended:
        rows += [_about(name, text) for name, text in _facts(context, statement)]
    return Result(pa.Table.from_pylist(rows, schema=_COLUMNS))


def _describe_view(context: Context, statement: Describe) -> Result:
    """Its columns are those its query has now."""
    view = context.parts.views.find(context.full(statement.name))
    assert view is not None
    reference = Reference("__lakebed_1", view.name, statement.span)
    select = Select('SELECT * FROM "__lakebed_1"', statement.span, (reference,))
    reader, opened = rows_of(context, select, {})
    opened.close()
    comments = dict(view.columns)
    rows: list[dict[str, object]] = [
        {"column": f.name, "type": str(f.type), "nullable": True, "comment": comments.get(f.name)}
        for f in columns_of(reader.schema)
        if statement.path in ((), (f.name,))
    ]
    if statement.extended:
        rows.append(_about("view", view.sql))
        rows += [_about("comment", view.comment)] if view.comment else []
    return Result(pa.Table.from_pylist(rows, schema=_COLUMNS))


def _about(name: str, text: str) -> dict[str, object]:
    return {"column": f"# {name}", "type": text, "nullable": None, "key": None, "comment": None}


def _facts(context: Context, statement: Describe) -> list[tuple[str, str]]:
    table = context.lake.table(context.text(statement.name))
    return [
        ("name", table.name),
        ("version", str(table.version)),
        ("rows", str(table.row_count)),
        ("location", table.location),
        ("formats", ", ".join(table.formats)),
        ("partitioned by", ", ".join(str(f) for f in table.partitioning.fields)),
        ("comment", table.comment or ""),
    ]


def run_describe_namespace(context: Context, statement: DescribeNamespace) -> Result:
    properties = context.lake.namespace_properties(".".join(statement.namespace))
    return _pairs("property", "value", properties)


def _pairs(left: str, right: str, values: dict[str, str]) -> Result:
    columns = {left: pa.array(list(values), _TEXT), right: pa.array(list(values.values()), _TEXT)}
    return Result(pa.table(columns))
