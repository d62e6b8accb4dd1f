"""Types and values of the model as DuckDB writes them."""

from uuid import UUID

from lakebed.model.quoting import quoted, text_literal
from lakebed.model.types import (
    DecimalType,
    FixedType,
    ListType,
    MapType,
    Primitive,
    Scalar,
    Stored,
    StructType,
    Type,
)

_NAMES = {
    "boolean": "BOOLEAN",
    "byte": "TINYINT",
    "short": "SMALLINT",
    "int": "INTEGER",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "date": "DATE",
    "time": "TIME",
    "timestamp": "TIMESTAMP WITH TIME ZONE",
    "timestamp_ntz": "TIMESTAMP",
    "timestamp_ns": "TIMESTAMP_NS",
    "timestamptz_ns": "TIMESTAMPTZ_NS",
    "string": "VARCHAR",
    "uuid": "UUID",
    "binary": "BLOB",
}
_MOMENTS = {
    "timestamp": "make_timestamptz",
    "timestamp_ntz": "make_timestamp",
    "timestamp_ns": "make_timestamp_ns",
    "timestamptz_ns": "make_timestamp_ns",
}


def type_text(kind: Type) -> str:
    match kind:
        case Primitive(name):
            return _NAMES[name]
        case DecimalType(precision, scale):
            return f"DECIMAL({precision},{scale})"
        case FixedType():
            return "BLOB"
        case StructType(fields):
            members = (f"{quoted(f.name)} {type_text(f.type)}" for f in fields)
            return f"STRUCT({', '.join(members)})"
        case ListType(_, element):
            return f"{type_text(element)}[]"
        case MapType(_, key, _, value):
            return f"MAP({type_text(key)}, {type_text(value)})"


def literal(value: Stored, kind: Scalar) -> str:
    """A value in stored form; never through text that rounds."""
    if isinstance(value, bytes):
        is_uuid = kind == Primitive("uuid")
        return f"CAST('{UUID(bytes=value)}' AS UUID)" if is_uuid else blob_literal(value)
    match kind:
        case Primitive("string"):
            return text_literal(str(value))
        case Primitive("date"):
            return f"(DATE '1970-01-01' + {value})"
        case Primitive("time"):
            return f"(TIME '00:00:00' + to_microseconds({value}))"
        case Primitive(name) if name in _MOMENTS:
            return f"CAST({_MOMENTS[name]}(CAST({value} AS BIGINT)) AS {_NAMES[name]})"
        case _:
            return f"CAST('{value}' AS {type_text(kind)})"


def blob_literal(value: bytes) -> str:
    escaped = "".join(f"\\x{byte:02X}" for byte in value)
    return f"CAST('{escaped}' AS BLOB)"
