"""Text in quotes that goes into a column of another type: read as that type, or refused."""

from collections.abc import Iterator

import pyarrow as pa

from lakebed.engines.arrow.types import arrow_type
from lakebed.engines.arrow.values import Refused, converter
from lakebed.model.errors import SchemaMismatch
from lakebed.model.types import Field, FixedType, Primitive

_BINARY = Primitive("binary")
_BY_VALUE = (Primitive("time"), Primitive("uuid"))  # Arrow reads no texts of these
_MOMENTS = tuple(
    Primitive(n) for n in ("date", "timestamp", "timestamp_ntz", "timestamp_ns", "timestamptz_ns")
)


def read_texts(column: pa.Array, field: Field) -> pa.Array:
    kind = field.type
    target = arrow_type(kind)
    if column.null_count == len(column):
        return pa.nulls(len(column), target)
    if kind == _BINARY or isinstance(kind, FixedType):
        return pa.array(list(_bytes(column, field)), pa.binary())
    if kind in _BY_VALUE:
        return _converted(column, field)
    try:
        return column.cast(target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        if kind in _MOMENTS:  # with more forms, and better reasons
            return _converted(column, field)
        bad = next((t for t in column if not _fits(t, target)), column[0])
        raise _refused(field, bad.as_py(), f"is no {kind}", f"write a {kind}") from error


def _fits(text: pa.Scalar, target: pa.DataType) -> bool:
    try:
        text.cast(target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return False
    return True


def _converted(column: pa.Array, field: Field) -> pa.Array:
    convert = converter(field.type, text=True)
    found = []
    for text in column.to_pylist():
        try:
            found.append(None if text is None else convert(text))
        except Refused as refused:
            raise _refused(field, text, refused.reason, refused.hint) from None
    return pa.array(found, arrow_type(field.type))


def _bytes(column: pa.Array, field: Field) -> Iterator[bytes | None]:
    for text in column.to_pylist():
        if text is not None and (not text.isascii() or "\\" in text):
            raise _refused(
                field, text, "is text, not bytes", r"say what is meant: encode(…), or '\xAB'::BLOB"
            )
        yield None if text is None else text.encode()


def _refused(field: Field, text: str, reason: str, hint: str) -> SchemaMismatch:
    shown = text if len(text) <= 100 else text[:100] + "…"
    return SchemaMismatch(
        f"column {field.name!r}: {shown!r} {reason}", hint=hint or "CAST it", column=field.name
    )
