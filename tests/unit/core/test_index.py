"""The index finds every file that pruning would keep, for every type, transform and predicate."""

from dataclasses import replace
from decimal import Decimal
from unittest.mock import patch

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from lakebed.core import index_probe
from lakebed.core.index_build import entries_of
from lakebed.core.index_keys import common_prefix, key_of, word_of
from lakebed.core.index_probe import ANYTHING, NOTHING, buckets_of, probe_of
from lakebed.core.index_search import find_ids
from lakebed.core.prune import might_match
from lakebed.meta import index
from lakebed.meta.files import Typing
from lakebed.meta.index import Extent
from lakebed.meta.migrate import apply_migrations, known_migrations
from lakebed.meta.sqlite import SqliteDialect
from lakebed.meta.store import Store
from lakebed.model.binding import bind
from lakebed.model.expressions import Predicate
from lakebed.model.files import ColumnStats, DataFile
from lakebed.model.ids import FieldId, FileId, SpecId, TableId
from lakebed.model.partitioning import PartitionSpec, parse_spec
from lakebed.model.schema import Schema, new_schema
from lakebed.model.schema_text import parse_schema
from lakebed.model.types import Stored, is_scalar
from lakebed.sql.predicate import parse_predicate
from tests.examples import examples
from tests.unit.core.test_prune import files, forgetful, specs
from tests.unit.predicate_cases import predicates, rows, schemas

T = TableId(1)
WIDTH = 3
VALUES: list[list[Stored]] = [
    [-(2**63), -1, 0, 1, 2**31, 2**63 - 1],
    [float("-inf"), -1.5, -5e-324, -0.0, 5e-324, 1.0, 1e300, float("inf")],
    [Decimal("-1e38"), Decimal("-0.01"), Decimal(0), Decimal("0.01"), Decimal("1e38")],
    ["", "a", "a\0", "ab", "b" * 40, "z", "é", "\ud7ff", "\ue000", "\U0010ffff"],
    [b"", b"\0", b"a", b"a\xff", b"\xff", b"\xff\xff"],
    [False, True],
]


@pytest.mark.parametrize("values", VALUES, ids=lambda v: type(v[0]).__name__)
def test_keys_and_words_keep_the_order_of_values(values: list[Stored]) -> None:
    keys = [key_of(v) for v in values]

    assert keys == sorted(keys)
    assert len(set(keys)) == len(values)
    for low in keys:
        for high in keys:
            prefix = common_prefix(min(low, high), max(low, high))
            words = [word_of(key, prefix) for key in keys]
            assert words == sorted(words)


def test_the_two_zeros_have_one_key() -> None:
    assert key_of(0.0) == key_of(-0.0)


@settings(max_examples=examples(300, 5000), deadline=None)
@given(st.data())
def test_every_file_that_can_match_is_found(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    bound = bind(data.draw(predicates(schema)), schema)
    cut = data.draw(st.integers(1, 3))
    found_specs, made = {}, []
    for number in range(data.draw(st.integers(1, 2))):
        spec = _numbered(data.draw(specs(schema)), number)
        found_specs[number] = spec
        for _ in range(data.draw(st.integers(1, 3))):
            written = files(schema, spec, data.draw(rows(schema)), cut)
            made += [data.draw(forgetful(file)) for file, _ in written]
    gap = data.draw(st.integers(0, 4))
    placed = [(FileId(n + (gap if n > 2 else 0)), f) for n, f in enumerate(made)]

    kept = {i for i, f in placed if might_match(bound, f, found_specs[f.spec_id], schema)}
    most_ranges = data.draw(st.sampled_from((0, 16)))  # values of a list are asked for otherwise
    found = _find(schema, found_specs, placed, bound, most_ranges=most_ranges)
    event("all" if found is None else f"{len(kept)} kept")
    assert found is None or kept <= set(found)
    assert found is None or found == sorted(found)


def _numbered(spec: PartitionSpec, number: int) -> PartitionSpec:
    fields = [replace(f, id=FieldId(1000 + 2 * number + n)) for n, f in enumerate(spec.fields)]
    return PartitionSpec(SpecId(number), tuple(fields))


def _find(
    schema: Schema,
    of_specs: dict[int, PartitionSpec],
    placed: list[tuple[FileId, DataFile]],
    bound: Predicate,
    width: int = WIDTH,
    most_ranges: int = 16,
) -> list[int] | None:
    """None: the index is of no use for the predicate."""
    with patch.object(index_probe, "_MOST_RANGES", most_ranges):
        probe = probe_of(bound, buckets_of(list(of_specs.values())))
    if probe == ANYTHING:
        return None
    store = Store(SqliteDialect(None, timeout_s=1, pool_size=1), timeout_s=1)
    apply_migrations(store, known_migrations())
    leaves = {int(f.id): f.type for f in schema.walk() if is_scalar(f.type)}
    chunks = max((i // width + 1 for i, _ in placed), default=0)
    with store.write() as tx:
        index.lock_extent(tx, T, width)
        for chunk in range(chunks):
            some = [(i, f) for i, f in placed if i // width == chunk]
            entries = entries_of(chunk, width, some, Typing(leaves, {}), of_specs)
            index.insert_chunks(tx, T, entries, chunk + 1)
    with store.read() as tx:
        extent = index.get_extent(tx, T)
        assert extent == Extent(width, chunks)
        found = [i for page in find_ids(tx, T, extent, probe) for i in page]
    store.close()
    return found


_OF_TWO_PREFIXES: list[Stored | None] = [
    *(f"first-{n}" for n in range(8)),
    *(f"second-{n}" for n in range(8)),
]
_TEXTS = ", ".join(f"'n{n:02d}'" for n in range(30))
# Column type, partition terms, values of files one by one, condition, files that are found.
EFFECTIVE: list[tuple[str, list[str], list[Stored | None], str, list[int]]] = [
    ("long", [], [1, 2, 3, 4, 5, 6, 7], "c = 5", [4]),
    ("long", [], [7, 1, 6, 2, 5, 3, 4], "c <= 2", [1, 3]),
    ("long", [], [7, 1, 6, 2, 5, 3, 4], "c IN (1, 4) OR c > 6", [0, 1, 6]),
    ("long", [], [7, 1, 6, 2, 5, 3, 4], "c > 2 AND NOT c > 4", [5, 6]),
    ("long", [], [7, None, 6, 2, None, 3, 4], "c IS NULL", [1, 4]),
    ("long", [], [7, None, 6, 2, None, 3, 4], "c IS NOT NULL", [0, 2, 3, 5, 6]),
    ("double", [], [0.5, float("nan"), -1.5, 2.5], "c > 1", [1, 3]),
    ("decimal(20,2)", [], [Decimal("1.50"), Decimal("2.50"), Decimal("9.99")], "c = 2.5", [1]),
    ("date", [], [1, 2, 3, 4], "c >= DATE '1970-01-04'", [2, 3]),
    ("timestamp", ["day(c)"], [0, 10**11, 2 * 10**11], "c < TIMESTAMP '1970-01-02'", [0]),
    ("string", [], [f"customer-0000{n}" for n in range(8)], "c = 'customer-00003'", [3]),
    ("string", [], ["b", "a", "abc", "ab", "c"], "c LIKE 'ab%'", [2, 3]),
    ("string", [], ["b", "ab\u00fc", "ab\U0010ffff" * 30, "ac"], "c LIKE 'ab%'", [1, 2]),
    ("long", [], [7, 1, 6, 2, 5, 3, 4], f"c IN ({', '.join(map(str, range(5, 50)))})", [0, 2, 4]),
    ("string", [], _OF_TWO_PREFIXES, "c = 'first-4' OR c = 'second-2'", [4, 10]),
    ("string", [], _OF_TWO_PREFIXES, "c IN ('first-4', 'second-2')", [4, 10]),
    ("string", [], ["n07", "n01", "x", "n90", "a"], f"c IN ({_TEXTS})", [0, 1]),
    ("boolean", [], [True, False, None, True], "c", [0, 3]),
    ("long", ["truncate(10, c)"], [5, 15, 25], "c = 17", [1]),
    ("binary", [], [b"a", b"b"], "c = X'62'", [1]),
]


@pytest.mark.parametrize(
    ("kind", "terms", "values", "where", "expected"), EFFECTIVE, ids=[c[3] for c in EFFECTIVE]
)
def test_files_that_cannot_match_are_not_found(
    kind: str,
    terms: list[str],
    values: list[Stored | None],
    where: str,
    expected: list[int],
) -> None:
    schema = new_schema(parse_schema(f"c {kind}"))
    spec = parse_spec(tuple(terms), schema)
    made = [files(schema, spec, [{1: v}], 32)[0][0] for v in values]
    if terms:  # the partition alone must tell
        made = [replace(f, stats={}) for f in made]
    placed = [(FileId(n), f) for n, f in enumerate(made)]

    found = _find(schema, {0: spec}, placed, bind(parse_predicate(where), schema))

    assert found == expected


def test_only_files_of_the_bucket_are_found() -> None:
    schema = new_schema(parse_schema("c long"))
    spec = parse_spec(("bucket(16, c)",), schema)
    made = [files(schema, spec, [{1: v}], 32)[0][0] for v in range(64)]
    placed = [(FileId(n), replace(f, stats={})) for n, f in enumerate(made)]
    bound = bind(parse_predicate("c = 7"), schema)

    found = _find(schema, {0: spec}, placed, bound)

    assert found == [i for i, f in placed if might_match(bound, f, spec, schema)]
    assert 7 in found
    assert len(found) < 16


def test_one_odd_value_does_not_blur_a_chunk() -> None:
    schema = new_schema(parse_schema("c string"))
    values = ["zz", *(f"customer-{n:05d}" for n in range(23)), ""]
    made = [files(schema, parse_spec((), schema), [{1: v}], 32)[0][0] for v in values]
    placed = [(FileId(n), f) for n, f in enumerate(made)]

    def found(where: str) -> list[int] | None:
        bound = bind(parse_predicate(where), schema)
        return _find(schema, {}, placed, bound, width=25, most_ranges=1)

    assert found("c = 'customer-00003'") == [4]
    assert found("c = 'zz'") == [0]
    assert found("c = ''") == [24]
    assert found("c IN ('customer-00003', 'zz')") == [0, 4]
    assert found("c IN ('', 'customer-00009', 'x')") == [
        0,
        10,
        24,
    ]  # of "x" and "zz" no more is kept


def test_files_without_rows_and_missing_ids_are_not_found() -> None:
    schema = new_schema(parse_schema("c long"))
    stats = {FieldId(1): ColumnStats(2, 0, None, None, 1, 9)}
    full = DataFile("f", 1, 2, SpecId(0), (), stats)
    placed = [(FileId(0), full), (FileId(1), replace(full, record_count=0)), (FileId(5), full)]

    found = _find(schema, {}, placed, bind(parse_predicate("c = 5"), schema))

    assert found == [0, 5]


def test_condition_that_holds_for_no_row_finds_nothing() -> None:
    schema = new_schema(parse_schema("c long"))

    assert probe_of(bind(parse_predicate("c = 2.5"), schema), {}) == NOTHING
    assert probe_of(bind(parse_predicate("c != 2"), schema), {}) == ANYTHING


@pytest.mark.parametrize(
    "where", ["c != 6", "NOT c = 6", "c NOT IN (6, 7)", "NOT (c = 6 AND c IS NULL)"]
)
def test_what_no_range_can_say_lets_every_file_through(where: str) -> None:
    schema = new_schema(parse_schema("c long"))
    assert probe_of(bind(parse_predicate(where), schema), {}) == ANYTHING
