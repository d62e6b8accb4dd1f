"""Pruning is safe for every file and predicate, and effective where it should be."""

import math
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from lakebed.core.prune import might_match, must_match
from lakebed.model.binding import bind
from lakebed.model.errors import InvalidSchema
from lakebed.model.files import ColumnStats, DataFile
from lakebed.model.ids import FieldId, SpecId
from lakebed.model.partitioning import UNPARTITIONED, PartitionField, PartitionSpec, parse_spec
from lakebed.model.schema import Schema, new_schema
from lakebed.model.schema_text import parse_schema
from lakebed.model.transforms import Transform, apply, check_transform
from lakebed.model.types import Field, Stored, is_scalar
from lakebed.sql.predicate import parse_predicate
from tests.unit.predicate_cases import Meaning, Row, predicates, rows, schemas

TRANSFORMS = [
    *(Transform(name) for name in ("identity", "year", "month", "day", "hour")),
    *(Transform(name, width) for name in ("bucket", "truncate") for width in (1, 2, 3, 16)),
]
FORGETTABLE = ("null_count", "nan_count", "lower", "upper")
DAY = 86_400 * 10**6


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_no_matching_row_is_pruned_and_no_other_is_promised(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    table, predicate = data.draw(rows(schema)), data.draw(predicates(schema))
    spec = data.draw(specs(schema))
    cut = data.draw(st.integers(1, 3))

    bound = bind(predicate, schema)
    for written, members in files(schema, spec, table, cut):
        file = data.draw(forgetful(written))
        answers = [Meaning(schema).of(predicate, row) for row in members]
        might = might_match(bound, file, spec, schema)
        must = must_match(bound, file, spec, schema)
        event(f"might {might}, must {must}")
        assert might or True not in answers
        assert not must or set(answers) == {True}


# Column type, lowest and highest value; then what prunes, what all rows match, what stays open.
EFFECTIVE: list[tuple[str, Stored, Stored, str, str, str]] = [
    ("boolean", False, False, "c", "NOT c", "c IS NULL OR c OR NOT c"),
    ("byte", 1, 5, "c > 5", "c <= 5", "c = 3"),
    ("short", 1, 5, "c < 1", "c >= 1", "c != 3"),
    ("int", 1, 5, "c = 6", "c != 6", "c IN (3, 9)"),
    ("long", 1, 5, "c IN (0, 6)", "c NOT IN (0, 6)", "c NOT IN (1, 6)"),
    ("long", 5, 5, "c <> 5", "c = 5", "c = 5 AND c IS NULL OR c > 4"),
    ("float", 0.5, 1.5, "c > 1.5", "c BETWEEN 0.5 AND 1.5", "c > 1"),
    ("double", 0.5, 1.5, "c = 'NaN'", "c < 'NaN'", "c = 1"),
    ("double", -0.0, 0.0, "c < 0", "c = 0", "c = 0"),
    ("decimal(9,2)", Decimal("1.10"), Decimal("2.20"), "c > 2.2", "c >= 1.1", "c = 1.5"),
    ("date", 0, 9, "c > DATE '1970-01-10'", "c < '1970-02-01'", "c = '1970-01-02'"),
    ("time", 0, 10**6, "c > '00:00:01'", "c <= TIME '00:00:01'", "c < '00:00:01'"),
    ("timestamp", 0, DAY, "c > '1970-01-02'", "c >= '1970-01-01'", "c < '1970-01-02'"),
    ("timestamp_ntz", 0, DAY, "c < '1970-01-01'", "c < '1970-01-03'", "c = '1970-01-02'"),
    ("timestamp_ns", 0, 1, "c > '1970-01-01T00:00:00.000000001'", "c < '1971-01-01'",
     "c > '1970-01-01'"),
    ("timestamptz_ns", 0, 1, "c < '1970-01-01'", "c < '1971-01-01'", "c = '1970-01-01'"),
    ("string", "b", "d", "c < 'b'", "c >= 'b'", "c = 'c'"),
    ("string", "ba", "bz", "c LIKE 'c%'", "c LIKE 'b%'", "c LIKE 'bc%'"),
    ("string", "ba", "bz", "c LIKE 'a%z'", "c NOT LIKE 'a%'", "c LIKE '%x'"),
    ("uuid", bytes(16), b"\x10" * 16, "c > '20000000-0000-0000-0000-000000000000'",
     "c < '20000000-0000-0000-0000-000000000000'", "c = '00000000-0000-0000-0000-000000000001'"),
    ("binary", b"\x01", b"\x02", "c = X'03'", "c < X'03'", "c = X'0102'"),
    ("fixed(2)", b"\x01\x00", b"\x02\x00", "c > X'0200'", "c >= X'0100'", "c = X'0101'"),
]  # fmt: skip


@pytest.mark.parametrize("case", EFFECTIVE, ids=lambda case: f"{case[0]} {case[3]}")
def test_bounds_decide_for_every_type(case: tuple[str, Stored, Stored, str, str, str]) -> None:
    kind, low, high, none, every, some = case
    stats = ColumnStats(10, 0, 0, None, low, high)

    assert verdict(none, kind, stats) == "none"
    assert verdict(every, kind, stats) == "all"
    assert verdict(f"NOT ({none})", kind, stats) == "all"
    assert verdict(f"NOT ({every})", kind, stats) == "none"
    assert verdict(some, kind, stats) in ("some", "all" if low == high else "some")


@pytest.mark.parametrize(
    ("kind", "transform", "value", "none", "every"),
    [
        ("string", "c", "eu", "c = 'us'", "c = 'eu'"),
        ("string", "c", None, "c = 'us'", "c IS NULL"),
        ("string", "c", "eu", "c IS NULL", "c IS NOT NULL"),
        ("double", "c", math.nan, "c < 1e300", "c > 1e300"),
        ("long", "bucket(16, c)", 4, "c = 34 AND c IN (34, 34)", "c IS NOT NULL"),
        ("long", "truncate(10, c)", 20, "c = 30", "c BETWEEN 20 AND 29"),
        ("long", "truncate(10, c)", -10, "c < -10 OR c > -1", "c >= -10"),
        ("decimal(9,2)", "truncate(50, c)", Decimal("1.50"), "c = 2", "c < 2.00"),
        ("string", "truncate(2, c)", "ab", "c = 'b'", "c LIKE 'ab%'"),
        ("string", "truncate(2, c)", "ab", "c LIKE 'ac%' OR c = 'ac'", "c >= 'ab' AND c < 'ac'"),
        ("string", "truncate(2, c)", "a", "c = 'ab'", "c = 'a'"),
        ("binary", "truncate(1, c)", b"\x01", "c = X'02FF'", "c >= X'01'"),
        ("date", "year(c)", 54, "c < '2024-01-01'", "c <= '2024-12-31'"),
        ("date", "month(c)", 649, "c > DATE '2024-02-29'", "c >= '2024-02-01'"),
        ("date", "day(c)", 1, "c = '1970-01-01'", "c = '1970-01-02'"),
        ("timestamp", "year(c)", 54, "c >= '2025-01-01'", "c >= '2024-01-01'"),
        ("timestamp", "month(c)", 649, "c < '2024-02-01'", "c < '2024-03-01'"),
        ("timestamp", "day(c)", 1, "c = '1970-01-01 23:59:59.999999'", "c < DATE '1970-01-03'"),
        ("timestamp_ntz", "hour(c)", 25, "c < '1970-01-02 01:00:00'", "c < '1970-01-02 02:00:00'"),
        ("timestamp_ns", "day(c)", 1, "c > '1970-01-03'", "c >= '1970-01-02'"),
    ],
)  # fmt: skip
def test_partition_values_decide_for_every_transform(
    kind: str, transform: str, value: Stored | None, none: str, every: str
) -> None:
    assert verdict(none, kind, None, by=transform, partition=(value,)) == "none"
    assert verdict(every, kind, None, by=transform, partition=(value,)) == "all"


@pytest.mark.parametrize(
    ("kind", "transform", "value", "first", "last"),
    [
        ("long", "truncate(10, c)", 20, "20", "29"),
        ("long", "truncate(10, c)", -10, "-10", "-1"),
        ("decimal(9,2)", "truncate(50, c)", Decimal("1.50"), "1.5", "1.99"),
        ("string", "truncate(2, c)", "ab", "'ab'", "'abzzzzzzzz'"),
        ("binary", "truncate(1, c)", b"\xff", "X'FF'", "X'FFFFFF'"),
        ("date", "year(c)", 54, "'2024-01-01'", "'2024-12-31'"),
        ("date", "month(c)", 649, "'2024-02-01'", "'2024-02-29'"),
        ("timestamp", "year(c)", -1, "'1969-01-01'", "'1969-12-31 23:59:59.999999'"),
        ("timestamp", "month(c)", 649, "'2024-02-01'", "'2024-02-29 23:59:59.999999'"),
        ("timestamp", "day(c)", 1, "'1970-01-02'", "'1970-01-02 23:59:59.999999'"),
        ("timestamp", "hour(c)", 1, "'1970-01-01 01:00'", "'1970-01-01 01:59:59.999999'"),
        ("timestamp_ns", "hour(c)", 1, "'1970-01-01 01:00'", "'1970-01-01 01:59:59.999999999'"),
    ],
)
def test_the_first_and_the_last_value_of_a_partition_are_read(
    kind: str, transform: str, value: Stored, first: str, last: str
) -> None:
    for literal in (first, last):
        assert verdict(f"c = {literal}", kind, None, by=transform, partition=(value,)) == "some"


def test_times_before_1970_are_found_where_old_writers_put_them() -> None:
    where = "c = '1969-12-31 23:00:00'"

    assert verdict(where, "timestamp", None, by="day(c)", partition=(-1,)) == "some"
    assert verdict(where, "timestamp", None, by="day(c)", partition=(0,)) == "some"
    assert verdict(where, "timestamp", None, by="day(c)", partition=(1,)) == "none"


def test_only_the_bucket_of_a_value_is_read() -> None:
    found = {
        n: verdict("c = 34", "long", None, by="bucket(16, c)", partition=(n,)) for n in range(16)
    }
    buckets = [n for n, answer in found.items() if answer != "none"]

    assert buckets == [apply(Transform("bucket", 16), parse_schema("c long")[0].type, 34)]


def test_statistics_and_partition_values_decide_together() -> None:
    bounds = ColumnStats(10, None, None, None, 22, 25)

    assert verdict("c = 21", "long", bounds, by="truncate(10, c)", partition=(20,)) == "none"
    assert verdict("c > 20", "long", bounds, by="truncate(10, c)", partition=(20,)) == "all"
    assert verdict("c > 20", "long", bounds) == "some"  # a NULL is possible


@pytest.mark.parametrize(
    ("stats", "where", "expected"),
    [
        (None, "c = 1", "some"),
        (ColumnStats(10), "c = 1", "some"),
        (ColumnStats(10, 10), "c = 1 OR c <> 1", "none"),
        (ColumnStats(10, 10), "c IS NULL", "all"),
        (ColumnStats(10, 10), "NOT (c = 1)", "none"),
        (ColumnStats(10, 3, None, None, 1, 1), "c = 1", "some"),
        (ColumnStats(10, 0, None, None, 1, 1), "c = 1", "all"),
        (ColumnStats(10, 0), "c IS NULL", "none"),
        (ColumnStats(0, 0), "c IS NULL", "some"),
        (ColumnStats(10, 0, None, None, 5, 1), "c = 3", "some"),  # impossible: not believed
        (ColumnStats(10, 0, None, None, 1, 5), "c NOT IN (9, NULL)", "none"),
        (ColumnStats(10, 0, None, None, 1, 5), "c = NULL", "none"),
        (ColumnStats(10, 0, None, None, 1, None), "c < 1", "none"),
        (ColumnStats(10, 0, None, None, None, 5), "c < 9", "all"),
        (ColumnStats(10, 0, None, None, 1, 5), "c < 99999999999999999999", "all"),
    ],
)
def test_counts_tell_null_from_unknown(
    stats: ColumnStats | None, where: str, expected: str
) -> None:
    assert verdict(where, "long", stats) == expected


@pytest.mark.parametrize(
    ("nan_count", "where", "expected"),
    [
        (None, "c > 5", "some"),
        (0, "c > 5", "none"),
        (2, "c > 5", "some"),
        (2, "c < 5", "some"),
        (10, "c > 5", "all"),
        (10, "c = 'NaN'", "all"),
        (10, "c <= 5", "none"),
        (None, "c >= 1", "all"),
        (None, "c IN (9)", "none"),
    ],
)
def test_nan_is_beyond_the_bounds(nan_count: int | None, where: str, expected: str) -> None:
    assert verdict(where, "double", ColumnStats(10, 0, nan_count, None, 1.0, 2.0)) == expected


def test_bounds_of_nan_are_not_believed() -> None:
    stats = ColumnStats(10, 0, None, None, math.nan, math.nan)

    assert verdict("c = 1", "double", stats) == "some"


def test_required_columns_hold_no_null_even_without_statistics() -> None:
    assert verdict("c IS NULL", "long not null", None) == "none"
    assert verdict("c < 99999999999999999999", "long not null", None) == "all"
    assert verdict("c IS NULL", "struct<x: long not null> not null", None) == "none"
    assert verdict("c.x IS NULL", "struct<x: long not null>", None) == "some"


def test_members_of_structs_have_bounds_of_their_own() -> None:
    schema = new_schema(parse_schema("c struct<x: long, y: long>"))
    member = schema.find(("c", "y"))
    assert member is not None
    one = replace(file(10), stats={member.id: ColumnStats(10, 0, None, None, 1, 5)})

    assert not might_match(bind(parse_predicate("c.y > 5"), schema), one, None, schema)
    assert might_match(bind(parse_predicate("c.x > 5"), schema), one, None, schema)


def test_a_file_without_rows_matches_nothing() -> None:
    schema = new_schema(parse_schema("c long"))

    assert not might_match(parse_predicate("TRUE"), file(0), UNPARTITIONED, schema)
    assert not must_match(parse_predicate("TRUE"), file(0), UNPARTITIONED, schema)


def test_or_needs_one_side_and_null_is_no_match() -> None:
    stats = ColumnStats(10, 0, None, None, 1, 5)

    assert verdict("c > 9 OR c < 0", "long", stats) == "none"
    assert verdict("c > 9 OR c < 6", "long", stats) == "all"
    assert verdict("c < 6 AND NULL", "long", stats) == "none"
    assert verdict("c < 6 OR NULL", "long", stats) == "all"
    assert verdict("NOT (c > 9 AND NULL)", "long", stats) == "all"


def verdict(
    where: str,
    kind: str,
    stats: ColumnStats | None,
    *,
    by: str | None = None,
    partition: tuple[Stored | None, ...] = (),
) -> str:
    """How many rows of a file with ten rows match: none, some or all."""
    schema = new_schema(parse_schema(f"c {kind}"))
    spec = parse_spec((by,), schema) if by else UNPARTITIONED
    known = {FieldId(1): stats} if stats else {}
    one = replace(file(10), partition=partition, stats=known)
    bound = bind(parse_predicate(where), schema)
    if must_match(bound, one, spec, schema):
        return "all"
    return "some" if might_match(bound, one, spec, schema) else "none"


def file(record_count: int) -> DataFile:
    return DataFile("data/a.parquet", 100, record_count, SpecId(0), (), {})


@st.composite
def specs(draw: st.DrawFn, schema: Schema) -> PartitionSpec:
    possible = [
        PartitionField(FieldId(1000), "p", field.id, transform)
        for field in schema.walk()
        for transform in TRANSFORMS
        if _fits(transform, field)
    ]
    chosen = draw(st.lists(st.sampled_from(possible), max_size=2)) if possible else []
    return PartitionSpec(SpecId(0), tuple(chosen))


def _fits(transform: Transform, field: Field) -> bool:
    try:
        check_transform(transform, field.type, field.name)
    except InvalidSchema:
        return False
    return True


def files(
    schema: Schema, spec: PartitionSpec, table: list[Row], cut: int
) -> list[tuple[DataFile, list[Row]]]:
    """The rows as a writer would lay them out, with statistics counted one by one."""
    groups: dict[str, tuple[tuple[Stored | None, ...], list[Row]]] = {}
    for row in table:
        key = tuple(
            apply(f.transform, schema.field(f.source_id).type, row[f.source_id])
            for f in spec.fields
        )
        groups.setdefault(repr(key), (key, []))[1].append(row)
    return [
        (
            DataFile("f", 1, len(members), spec.id, key, all_stats(schema, members, cut)),
            members,
        )
        for key, members in groups.values()
    ]


def all_stats(schema: Schema, members: list[Row], cut: int) -> dict[FieldId, ColumnStats]:
    leaves = [field for field in schema.walk() if is_scalar(field.type)]
    return {field.id: stats_of([row[field.id] for row in members], cut) for field in leaves}


def stats_of(column: list[Any], cut: int) -> ColumnStats:
    filled = [v for v in column if v is not None]
    numbers = [v for v in filled if v == v]  # noqa: PLR0124  # NaN differs from itself
    nans = len(filled) - len(numbers) if any(isinstance(v, float) for v in filled) else None
    low, high = (min(numbers), max(numbers)) if numbers else (None, None)
    if isinstance(low, str | bytes):
        low, high = low[:cut], rounded_up(high, cut)
    return ColumnStats(len(column), len(column) - len(filled), nans, None, low, high)


def rounded_up(value: Any, cut: int) -> Any:
    if len(value) <= cut:
        return value
    for end in range(cut, 0, -1):
        if isinstance(value, bytes) and value[end - 1] < 255:
            return value[: end - 1] + bytes([value[end - 1] + 1])
        if isinstance(value, str) and ord(value[end - 1]) < 0x10FFFF:
            return value[: end - 1] + chr(ord(value[end - 1]) + 1)
    return None


@st.composite
def forgetful(draw: st.DrawFn, file: DataFile) -> DataFile:
    """The file as other writers describe it: with some statistics missing."""
    kept = {}
    for field_id, stats in file.stats.items():
        lost = draw(st.sets(st.sampled_from(FORGETTABLE)))
        if draw(st.integers(0, 4)):
            nulls, nans, low, high = (
                None if name in lost else getattr(stats, name) for name in FORGETTABLE
            )
            kept[field_id] = ColumnStats(stats.value_count, nulls, nans, None, low, high)
    return replace(file, stats=kept)
