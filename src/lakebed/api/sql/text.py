"""A table as the statement that would create it."""

from lakebed.api.table import Table
from lakebed.model.partitioning import partition_terms, sort_terms
from lakebed.model.types import Field


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
    text = f"CREATE TABLE {table.name} (\n{body}\n)"
    partitions = partition_terms(table.partitioning, schema)
    if partitions:
        text += f"\nPARTITIONED BY ({', '.join(partitions)})"
    sorts = sort_terms(table.sort_order, schema)
    if sorts:
        text += f"\nORDER BY ({', '.join(sorts)})"
    if table.comment is not None:
        text += f"\nCOMMENT {_literal(table.comment)}"
    if table.properties:
        pairs = [f"{_literal(k)} = {_literal(v)}" for k, v in sorted(table.properties.items())]
        text += f"\nTBLPROPERTIES ({', '.join(pairs)})"
    return text


def _column(field: Field) -> str:
    required = " NOT NULL" if field.required else ""
    comment = f" COMMENT {_literal(field.doc)}" if field.doc else ""
    return f"{_quoted(field.name)} {field.type}{required}{comment}"


def _quoted(name: str) -> str:
    return name if name.isidentifier() else '"' + name.replace('"', '""') + '"'


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
