"""Tables and views as the statements that would create them."""

from collections.abc import Mapping

import pyarrow as pa

from lakebed.api.table import Table
from lakebed.engines.arrow.types import arrow_type
from lakebed.model.partitioning import partition_terms, sort_terms
from lakebed.model.quoting import quoted, text_literal
from lakebed.model.types import Field
from lakebed.model.views import View
from lakebed.rowops.literal import literal
from lakebed.sql.columns import RESERVED


def create_text(table: Table) -> str:
    schema = table.schema
    lines = [_column(field) for field in schema.fields]
    if schema.primary_key:
        names = ", ".join(_quoted(schema.field(i).name) for i in schema.primary_key)
        lines.append(f"PRIMARY KEY ({names})")
    lines += [
        f"CONSTRAINT {_quoted(name)} CHECK ({text})" for name, text in table.constraints.items()
    ]
    body = ",\n".join(f"  {line}" for line in lines)
    name = ".".join(map(_quoted, table.name.split(".")))
    text = f"CREATE TABLE {name} (\n{body}\n)"
    partitions = partition_terms(table.partitioning, schema)
    if partitions:
        text += f"\nPARTITIONED BY ({', '.join(partitions)})"
    sorts = sort_terms(table.sort_order, schema)
    if sorts:
        text += f"\nORDER BY ({', '.join(sorts)})"
    if table.comment is not None:
        text += f"\nCOMMENT {text_literal(table.comment)}"
    if table.properties:
        text += f"\nTBLPROPERTIES ({_pairs(table.properties)})"
    return text


def _pairs(properties: Mapping[str, str]) -> str:
    return ", ".join(
        f"{text_literal(k)} = {text_literal(v)}" for k, v in sorted(properties.items())
    )


def _column(field: Field) -> str:
    required = " NOT NULL" if field.required else ""
    if field.write_default is not None:
        value = pa.scalar(field.write_default, arrow_type(field.type)).as_py()
        required += f" DEFAULT {literal(value)}"
    comment = f" COMMENT {text_literal(field.doc)}" if field.doc else ""
    return f"{_quoted(field.name)} {field.type}{required}{comment}"


def view_text(view: View) -> str:
    text = f"CREATE VIEW {'.'.join(map(_quoted, str(view.name).split('.')))}"
    if view.columns:
        listed = [
            _quoted(name) + (f" COMMENT {text_literal(comment)}" if comment else "")
            for name, comment in view.columns
        ]
        text += f" ({', '.join(listed)})"
    if view.comment is not None:
        text += f"\nCOMMENT {text_literal(view.comment)}"
    if view.properties:
        text += f"\nTBLPROPERTIES ({_pairs(view.properties)})"
    return f"{text} AS\n{view.sql}"


def _quoted(name: str) -> str:
    plain = name.isidentifier() and name.lower() not in RESERVED
    return name if plain else quoted(name)
