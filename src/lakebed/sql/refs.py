"""CREATE BRANCH and CREATE TAG inside ALTER TABLE, as Iceberg has them."""

from lakebed.sql.alterations import CreateRef
from lakebed.sql.fragments import Fragments
from lakebed.sql.query import Expression, Parameter
from lakebed.sql.reader import Reader

_UNITS = {"DAY": 86_400_000, "HOUR": 3_600_000, "MINUTE": 60_000}
_LONGEST = 100 * 366 * _UNITS["DAY"]
_WORDS = ("RETAIN", "WITH", ",")


def read_create_ref(reader: Reader, fragments: Fragments, *, or_replace: bool) -> CreateRef:
    kind = reader.take_any("BRANCH", "TAG")
    if kind is None:
        raise reader.error("expected BRANCH or TAG")
    if_not_exists = reader.take("IF", "NOT", "EXISTS")
    name = reader.name("the name of a ref")
    version, timestamp = read_as_of(reader, fragments, *_WORDS)
    retain = _duration(reader) if reader.take("RETAIN") else None
    keep = keep_ms = None
    if kind == "BRANCH" and reader.take("WITH", "SNAPSHOT", "RETENTION"):
        if reader.peek(1).upper.startswith("SNAPSHOT"):
            keep = reader.integer()
            reader.next()
        if reader.peek().kind == "number":
            keep_ms = _duration(reader)
    return CreateRef(
        kind.lower(),
        name,
        version,
        timestamp,
        if_not_exists,
        or_replace,
        retain,
        keep,
        keep_ms,
    )


def read_as_of(
    reader: Reader, fragments: Fragments, *ends: str
) -> tuple[int | str | Parameter | None, Expression | None]:
    """`AS OF VERSION 3`, `VERSION AS OF 3`, `TIMESTAMP AS OF '…'`, if one comes next."""
    if reader.take("AS", "OF", "VERSION") or reader.take("VERSION", "AS", "OF"):
        parameter = reader.parameter()
        if parameter is not None:
            return parameter, None
        return (reader.text() if reader.peek().kind == "string" else reader.integer()), None
    if reader.take("AS", "OF", "TIMESTAMP") or reader.take("TIMESTAMP", "AS", "OF"):
        return None, fragments.expression(*reader.skip_until(*ends))
    return None, None


def _duration(reader: Reader) -> int:
    start = reader.start
    count = reader.integer()
    unit = reader.next().upper.removesuffix("S")
    if unit not in _UNITS or not 0 < count * _UNITS[unit] <= _LONGEST:
        raise reader.error("expected a number of DAYS, HOURS or MINUTES", offset=start)
    return count * _UNITS[unit]
