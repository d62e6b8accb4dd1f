"""What is known of a column's values in one file: a domain holds all of them, maybe more. Pure."""

import math
from decimal import Context, Decimal
from typing import NamedTuple

from lakebed.model.expressions import Column
from lakebed.model.files import ColumnStats, DataFile
from lakebed.model.partitioning import PartitionSpec
from lakebed.model.schema import Schema
from lakebed.model.transforms import TEMPORAL, Transform
from lakebed.model.types import DecimalType, Primitive, Scalar, Stored

_FLOATS = (Primitive("float"), Primitive("double"))
_PER_DAY = {
    "date": 1,
    "timestamp": 86_400 * 10**6,
    "timestamp_ntz": 86_400 * 10**6,
    "timestamp_ns": 86_400 * 10**9,
    "timestamptz_ns": 86_400 * 10**9,
}
_WIDE = Context(prec=100)


class Domain(NamedTuple):  # one is made per file and leaf, and tuples are cheap to make
    """`nulls`, `nans` and `values` (all others) say what may occur; values lie from low to high.

    A bound of None is unknown. Bounds may be cut or rounded outwards: none need occur in the file.
    An open domain does not reach its high bound.
    """

    nulls: bool = True
    nans: bool = True
    values: bool = True
    low: Stored | None = None
    high: Stored | None = None
    is_open: bool = False
    prefix: str | None = None  # every value begins with it
    buckets: tuple[tuple[Transform, Stored], ...] = ()  # every value falls into them


def domain_of(column: Column, file: DataFile, spec: PartitionSpec | None, schema: Schema) -> Domain:
    """Everything that statistics, partition values and NOT NULL say together."""
    known = Domain(nans=column.type in _FLOATS)
    if column.field_id is None:
        return known
    stats = file.stats.get(column.field_id)
    if stats is not None:
        known = _meet(known, _from_stats(stats, file.record_count))
    for field, value in zip(spec.fields if spec else (), file.partition, strict=False):
        if field.source_id == column.field_id and column.type is not None:
            known = _meet(known, _from_partition(field.transform, column.type, value))
    if known.nulls and (known.values or known.nans) and _is_required(column.field_id, schema):
        known = known._replace(nulls=False)
    return known


def less(a: Stored, b: Stored) -> bool:
    return a < b  # type: ignore[operator]  # stored forms of one column compare with each other


def _from_stats(stats: ColumnStats, record_count: int) -> Domain:
    if stats.value_count < record_count:
        return Domain()  # rows that were not counted can hold anything
    nulls = stats.null_count
    filled = stats.value_count - (nulls or 0)
    return Domain(
        nulls=nulls is None or nulls > 0,
        nans=filled > 0 and stats.nan_count != 0,
        values=filled > (stats.nan_count or 0),
        low=_bound(stats.lower),
        high=_bound(stats.upper),
    )


def _bound(value: Stored | None) -> Stored | None:
    """NaN bounds nothing, though some writers record it."""
    return None if isinstance(value, float) and math.isnan(value) else value


def _from_partition(transform: Transform, kind: Scalar, value: Stored | None) -> Domain:
    if value is None:
        return Domain(nans=False, values=False)
    if isinstance(value, float) and math.isnan(value):
        return Domain(nulls=False, values=False)
    filled = Domain(nulls=False, nans=False)
    if transform.name == "identity":
        return filled._replace(low=value, high=value)
    if transform.name == "bucket":
        return filled._replace(buckets=((transform, value),))
    if transform.name == "truncate":
        return _truncated(filled, kind, value, transform.width)
    if transform.name in TEMPORAL:
        first, last = _period(transform.name, int(value), _PER_DAY[str(kind)])
        return filled._replace(low=first, high=last)
    return Domain()


def _truncated(filled: Domain, kind: Scalar, value: Stored, width: int) -> Domain:
    if isinstance(value, str | bytes):
        if len(value) < width:
            return filled._replace(low=value, high=value)
        prefix = value if isinstance(value, str) else None
        return filled._replace(low=value, high=_after(value), is_open=True, prefix=prefix)
    if isinstance(value, Decimal) and isinstance(kind, DecimalType):
        span = Decimal(width - 1).scaleb(-kind.scale, context=_WIDE)
        return filled._replace(low=value, high=_WIDE.add(value, span))
    return filled._replace(low=value, high=int(value) + width - 1)


def _after(prefix: str | bytes) -> str | bytes | None:
    """Something greater than all that begins with the prefix, if there is."""
    if isinstance(prefix, bytes):
        kept = prefix.rstrip(b"\xff")
        return kept[:-1] + bytes([kept[-1] + 1]) if kept else None
    text = prefix.rstrip("\U0010ffff")
    # Half surrogates are no text, so that what follows U+D7FF is U+E000.
    following = 0xE000 if text.endswith("\ud7ff") else ord(text[-1:] or "\0") + 1
    return text[:-1] + chr(following) if text else None


def _period(name: str, number: int, per_day: int) -> tuple[int, int]:
    """First and last value of the year, month, day or hour with this number.

    Old Iceberg writers rounded times before 1970 towards zero: such periods reach further back.
    """
    whole_days = name == "day" and per_day == 1  # nothing to round
    before = 1 if number <= 0 and not whole_days else 0
    return _start(name, number - before, per_day), _start(name, number + 1, per_day) - 1


def _start(name: str, number: int, per_day: int) -> int:
    if name == "hour":
        return number * per_day // 24
    if name == "day":
        return number * per_day
    year, month = (number, 0) if name == "year" else divmod(number, 12)
    return _first_day(1970 + year, month + 1) * per_day


def _first_day(year: int, month: int) -> int:
    """Days from the epoch to the first of a month, for years that `datetime` does not know too."""
    year, month = (year - 1, month + 9) if month <= 2 else (year, month - 3)
    era, of_era = divmod(year, 400)
    days = of_era * 365 + of_era // 4 - of_era // 100 + (153 * month + 2) // 5
    return era * 146_097 + days - 719_468


def _meet(a: Domain, b: Domain) -> Domain:
    low = b.low if a.low is None or (b.low is not None and less(a.low, b.low)) else a.low
    high = b.high if a.high is None or (b.high is not None and less(b.high, a.high)) else a.high
    nulls, nans, values = a.nulls and b.nulls, a.nans and b.nans, a.values and b.values
    crossed = low is not None and high is not None and less(high, low)
    if crossed or not (nulls or nans or values):
        return a  # they contradict each other: believe the first, which knows less
    is_open = any(d.is_open and d.high == high for d in (a, b))
    prefix, buckets = a.prefix or b.prefix, a.buckets + b.buckets
    return Domain(nulls, nans, values, low, high, is_open, prefix, buckets)


def _is_required(field_id: int, schema: Schema) -> bool:
    try:
        return all(field.required for field in schema.path_of(field_id))
    except KeyError:
        return False
