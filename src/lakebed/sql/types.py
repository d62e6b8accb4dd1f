"""SQL's names of types, of Spark, PostgreSQL, DuckDB and the standard, as types of the model."""

from lakebed.model.errors import SqlError
from lakebed.model.ids import FieldId
from lakebed.model.types import (
    DecimalType,
    Field,
    FixedType,
    ListType,
    MapType,
    Primitive,
    StructType,
    Type,
)
from lakebed.sql.reader import Reader

_NEW = FieldId(0)  # ids are given later, by model.schema
_DEEPEST = 64
_TYPES = {
    "BOOLEAN": "boolean",
    "BOOL": "boolean",
    "TINYINT": "byte",
    "BYTE": "byte",
    "INT1": "byte",
    "SMALLINT": "short",
    "SHORT": "short",
    "INT2": "short",
    "INTEGER": "int",
    "INT": "int",
    "INT4": "int",
    "BIGINT": "long",
    "LONG": "long",
    "INT8": "long",
    "REAL": "float",
    "FLOAT": "float",
    "FLOAT4": "float",
    "DOUBLE": "double",
    "FLOAT8": "double",
    "DATE": "date",
    "TIME": "time",
    "TIMESTAMP": "timestamp",
    "TIMESTAMPTZ": "timestamp",
    "TIMESTAMP_LTZ": "timestamp",
    "TIMESTAMP_NTZ": "timestamp_ntz",
    "DATETIME": "timestamp_ntz",
    "TIMESTAMP_NS": "timestamp_ns",
    "TIMESTAMPTZ_NS": "timestamptz_ns",
    "STRING": "string",
    "TEXT": "string",
    "VARCHAR": "string",
    "CHAR": "string",
    "CHARACTER": "string",
    "UUID": "uuid",
    "BINARY": "binary",
    "VARBINARY": "binary",
    "BYTEA": "binary",
    "BLOB": "binary",
}
_REFUSED = {
    "HUGEINT": "use DECIMAL(38, 0)",
    "UTINYINT": "use SMALLINT",
    "USMALLINT": "use INT",
    "UINTEGER": "use BIGINT",
    "UBIGINT": "use DECIMAL(20, 0)",
    "INTERVAL": "store a number of seconds or days",
    "JSON": "store JSON text in a STRING column",
    "VARIANT": "store JSON text in a STRING column",
    "ENUM": "use STRING with a CHECK constraint",
    "UNION": "use a STRUCT with one member for each kind",
    "GEOMETRY": "store WKB in a BINARY column",
    "SERIAL": "number the rows with row_number() when they are written",
    "BIGSERIAL": "number the rows with row_number() when they are written",
}


def read_type(reader: Reader, depth: int = 0) -> Type:
    if depth > _DEEPEST:
        raise reader.error(f"types may be nested {_DEEPEST} deep at most")
    kind = _plain_type(reader, depth)
    while True:  # INT[], INT ARRAY
        if reader.take("["):
            if not reader.take("]"):
                raise reader.unsupported("lists have no fixed length", hint="write INT[]")
        elif not reader.take("ARRAY"):
            return kind
        kind = ListType(_NEW, kind)


def _plain_type(reader: Reader, depth: int) -> Type:
    start = reader.start
    if reader.peek().kind != "word":
        raise reader.error("expected a type")
    name = reader.next().upper
    match name:
        case "DECIMAL" | "NUMERIC" | "DEC":
            return _decimal(reader)
        case "FIXED":
            return FixedType(_numbers(reader, 1)[0])
        case "ARRAY" | "LIST":
            close = _open(reader)
            element = read_type(reader, depth + 1)
            required = _not_null(reader)
            reader.expect(close)
            return ListType(_NEW, element, required)
        case "MAP":
            return _map(reader, depth)
        case "STRUCT" | "ROW":
            close = _open(reader)
            fields = reader.separated(lambda: _member(reader, depth))
            reader.expect(close)
            return StructType(tuple(fields))
        case _:
            return _primitive(reader, name, start)


def _primitive(reader: Reader, name: str, start: int) -> Type:
    if name in _REFUSED:
        raise reader.unsupported(
            f"the type {name} is not supported", hint=_REFUSED[name], offset=start
        )
    if name not in _TYPES:
        raise _unknown(reader, name, start)
    if name == "DOUBLE":
        reader.take("PRECISION")
    if name in ("CHAR", "CHARACTER"):
        reader.take("VARYING")
    kind = _TYPES[name]
    if kind in ("string", "timestamp", "time", "binary", "float") and reader.sees("("):
        if name in ("FLOAT", "BINARY"):
            raise reader.unsupported(
                f"{name} takes no length here", hint="use REAL, DOUBLE, BINARY or FIXED(n)"
            )
        _numbers(reader, 1)  # a length is no promise in either format
    if name in ("TIMESTAMP", "TIME"):
        if reader.take("WITHOUT"):
            reader.expect("TIME", "ZONE")
            return Primitive("timestamp_ntz" if name == "TIMESTAMP" else "time")
        if reader.take("WITH"):
            zoned = reader.take("LOCAL") or name == "TIMESTAMP"
            reader.expect("TIME", "ZONE")
            if not zoned:
                raise reader.unsupported("TIME has no zone", hint="use TIME", offset=start)
    return Primitive(kind)


def _unknown(reader: Reader, name: str, start: int) -> SqlError:
    known = ", ".join(sorted({*_TYPES, "DECIMAL(p, s)", "STRUCT<…>", "ARRAY<…>", "MAP<…>"}))
    return reader.error(f"unknown type {name}", hint=f"types are {known}", offset=start)


def _decimal(reader: Reader) -> DecimalType:
    start = reader.start
    if not reader.sees("("):
        raise reader.error("a DECIMAL needs its precision and scale", hint="write DECIMAL(18, 2)")
    numbers = reader.listed(reader.integer)
    precision, scale = [*numbers, 0][:2]
    if len(numbers) > 2 or not 1 <= precision <= 38 or not 0 <= scale <= precision:
        raise reader.error(
            "this precision or scale is out of range",
            hint="precision is 1 to 38, scale at most the precision",
            offset=start,
        )
    return DecimalType(precision, scale)


def _numbers(reader: Reader, count: int) -> list[int]:
    start = reader.start
    numbers = reader.listed(reader.integer)
    if len(numbers) != count or not all(0 < n < 2**31 for n in numbers):
        raise reader.error("expected one positive number", offset=start)
    return numbers


def _open(reader: Reader) -> str:
    opened = reader.take_any("<", "(")
    if opened is None:
        raise reader.error("expected < or (")
    return ">" if opened == "<" else ")"


def _map(reader: Reader, depth: int) -> MapType:
    close = _open(reader)
    key = read_type(reader, depth + 1)
    reader.expect(",")
    value = read_type(reader, depth + 1)
    required = _not_null(reader)
    reader.expect(close)
    return MapType(_NEW, key, _NEW, value, required)


def _member(reader: Reader, depth: int) -> Field:
    name = reader.name("the name of a member")
    reader.take(":")
    kind = read_type(reader, depth + 1)
    required = _not_null(reader)
    doc = reader.text() if reader.take("COMMENT") else None
    return Field(_NEW, name, kind, required, doc)


def _not_null(reader: Reader) -> bool:
    if reader.take("NOT"):
        reader.expect("NULL")
        return True
    reader.take("NULL")
    return False
