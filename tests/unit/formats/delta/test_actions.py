"""Actions, schemas and statistics: the exact text that goes into the log."""

import json
import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebed.formats.delta.actions import (
    Action,
    AddAction,
    CdcAction,
    CommitInfo,
    DeletionVector,
    MetadataAction,
    ProtocolAction,
    RemoveAction,
    TxnAction,
    encode_line,
    from_plain,
    to_plain,
)
from lakebed.formats.delta.features import Start, configuration_of, protocol_of
from lakebed.formats.delta.schema_json import schema_string
from lakebed.formats.delta.translate import add_of, layout_of, metadata_of
from lakebed.formats.delta.values import bound_encoders, partition_text
from lakebed.model.errors import UnsupportedFeature
from lakebed.model.files import ColumnStats, DataFile, LiveFile
from lakebed.model.ids import FieldId, FileId, SnapshotId, SpecId, Version
from lakebed.model.types import DecimalType, Primitive, Type
from tests.unit.formats.delta.rows import FakeLedger, first_state, schema_of

TIMESTAMP, NTZ, DOUBLE = Primitive("timestamp"), Primitive("timestamp_ntz"), Primitive("double")
MICROS_9999 = 253_402_300_799_999_999

ACTIONS: tuple[Action, ...] = (
    CommitInfo(1, 1, "t", "WRITE", {"mode": "Append"}, True, "e", "ada", "why"),
    ProtocolAction(1, 7, None, ("a", "b")),
    ProtocolAction(3, 7, ("b",), ("a", "b")),
    MetadataAction("id", "{}", ("p",), {"a": "b"}, "name", "text", 5),
    TxnAction("app", 3, 9),
    AddAction("a b/ü%.parquet", {"p": None, "q": "x"}, 5, 6, '{"numRecords":1}'),
    AddAction("f", {}, 5, 6, None, DeletionVector("u", "ab^-", 10, 2, 1), data_change=False),
    RemoveAction("a b", 5, {"p": "x"}, 7),
    RemoveAction("old", None),
    CdcAction("_change_data/a b/cdc.parquet", {"p": None, "q": "x"}, 7),
)


@pytest.mark.parametrize("action", ACTIONS, ids=lambda a: type(a).__name__)
def test_an_action_survives_its_line(action: Action) -> None:
    line = encode_line(action)

    ((name, plain),) = json.loads(line).items()
    assert from_plain(name, plain) == action
    assert b"null" not in line.replace(b'"p":null', b"")


def test_paths_are_percent_encoded_once_more_than_the_file_name() -> None:
    _, plain = to_plain(AddAction("data/p=a%20b/ü 1:2.parquet", {}, 1, 1))

    assert plain["path"] == "data/p=a%2520b/%C3%BC%201%3A2.parquet"


@given(st.text(st.characters(codec="utf-8"), min_size=1))
def test_every_path_survives(path: str) -> None:
    name, plain = to_plain(AddAction(path, {}, 1, 1))

    read = from_plain(name, plain)
    assert isinstance(read, AddAction)
    assert read.path == path


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("add", None),
        ("add", {"size": 1}),
        ("add", {"path": "f", "size": "1"}),
        ("add", {"path": "f", "size": True}),
        ("add", {"path": "f", "size": 1, "partitionValues": 3}),
        ("add", {"path": "f", "size": 1, "partitionValues": [1]}),
        ("protocol", {"minReaderVersion": 1}),
        ("metaData", {"id": "x"}),
        ("txn", []),
    ],
)
def test_malformed_actions_are_value_errors(name: str, plain: object) -> None:
    with pytest.raises(ValueError, match="is"):
        from_plain(name, plain)


def test_unknown_actions_are_passed_over() -> None:
    assert from_plain("domainMetadata", {"domain": "x"}) is None


def test_schema_string_has_every_type_in_deltas_words() -> None:
    schema = schema_of(
        "a byte, b short, c int, d long not null, e float, f double, g decimal(10,2), h date,"
        " i timestamp, j timestamp_ntz, k string, l binary, m boolean,"
        " n list<int not null>, o map<string, struct<x: int>>, p struct<y: string not null>"
    )

    fields = json.loads(schema_string(schema, mapped=False))["fields"]

    types = {f["name"]: f["type"] for f in fields}
    assert [types[name] for name in "abcdefghijklm"] == [
        *("byte", "short", "integer", "long", "float", "double", "decimal(10,2)", "date"),
        *("timestamp", "timestamp_ntz", "string", "binary", "boolean"),
    ]
    assert types["n"] == {"type": "array", "elementType": "integer", "containsNull": False}
    inner = {"name": "x", "type": "integer", "nullable": True, "metadata": {}}
    assert types["o"] == {
        "type": "map",
        "keyType": "string",
        "valueType": {"type": "struct", "fields": [inner]},
        "valueContainsNull": True,
    }
    assert types["p"]["fields"][0]["nullable"] is False
    assert [f["nullable"] for f in fields].count(False) == 1


def test_column_mapping_shows_ids_and_physical_names_at_every_struct_level() -> None:
    schema = schema_of("`a b` int, l list<struct<`c d`: int>>")

    fields = json.loads(schema_string(schema, mapped=True))["fields"]

    first, second = (f["metadata"] for f in fields)
    assert first == {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "col_1"}
    assert second == {"delta.columnMapping.id": 2, "delta.columnMapping.physicalName": "l"}
    (nested,) = fields[1]["type"]["elementType"]["fields"]
    assert nested["name"] == "c d"
    assert nested["metadata"]["delta.columnMapping.physicalName"] == f"col_{schema.last_column_id}"


def test_a_type_delta_lacks_is_refused_with_a_way_out() -> None:
    with pytest.raises(UnsupportedFeature) as caught:
        schema_string(schema_of("a uuid"), mapped=False)

    assert "iceberg" in caught.value.hint


def test_the_protocol_is_the_lowest_true_one_behind_the_fence() -> None:
    fence = ("inCommitTimestamp", "lakebedManaged")

    plain = protocol_of(first_state(schema_of("a int")))
    ntz = protocol_of(first_state(schema_of("a struct<t: timestamp_ntz>")))
    mapped = protocol_of(first_state(schema_of("`a b` timestamp_ntz")))

    assert plain == ProtocolAction(1, 7, None, fence)
    assert ntz == ProtocolAction(3, 7, ("timestampNtz",), (*fence, "timestampNtz"))
    both = ("columnMapping", "timestampNtz")
    assert mapped == ProtocolAction(3, 7, both, (*fence, *both))


@pytest.mark.parametrize(
    ("columns", "listed"),
    [
        ("a int not null", True),
        ("s struct<a: int, t: struct<b: int not null>>", True),
        ("l list<int not null>, m map<string, struct<a: int not null>>", False),
    ],
)
def test_the_protocol_lists_invariants_where_spark_looks_for_them(
    columns: str, listed: bool
) -> None:
    protocol = protocol_of(first_state(schema_of(columns)))

    assert ("invariants" in (protocol.writer_features or ())) == listed
    assert protocol.reader_features is None


def test_an_append_only_table_says_so_in_its_protocol() -> None:
    on = first_state(schema_of("a int"), properties={"delta.appendOnly": "true"})
    off = first_state(schema_of("a int"), properties={"delta.appendOnly": "false"})

    assert "appendOnly" in (protocol_of(on).writer_features or ())
    assert "appendOnly" not in (protocol_of(off).writer_features or ())


def test_configuration_shows_properties_as_they_are_but_no_false_claims() -> None:
    mine = {"owner": "ada", "delta.appendOnly": "false", "delta.columnMapping.mode": "id"}
    state = first_state(schema_of("a int"), properties={**mine, "delta.feature.rowTracking": "on"})

    shown = configuration_of(state, None)
    later = configuration_of(state, Start(Version(4), 99))

    assert shown == {
        "delta.appendOnly": "false",
        "delta.enableInCommitTimestamps": "true",
        "owner": "ada",
    }
    assert later["delta.inCommitTimestampEnablementVersion"] == "4"
    assert later["delta.inCommitTimestampEnablementTimestamp"] == "99"


def test_column_mapping_properties_reach_every_id_ever_given() -> None:
    state = first_state(schema_of("`a b` int"))

    shown = configuration_of(state, None)

    assert shown["delta.columnMapping.mode"] == "name"
    assert shown["delta.columnMapping.maxColumnId"] == str(state.last_column_id)


def test_partition_columns_are_shown_by_name_only_while_the_state_says_so() -> None:
    schema = schema_of("`a b` int, c int")
    ledger = FakeLedger(first_state(schema, ("a b",)))
    view = ledger.commit("create")

    shown = metadata_of(view.head, view.state, None)
    hidden = metadata_of(view.head, first_state(schema, ("a b",), delta_partitioned=False), None)

    assert shown.partition_columns == ("a b",)
    assert hidden.partition_columns == ()
    assert layout_of(view.state).partition == (("col_1", Primitive("int")),)


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (Primitive("string"), "a b/ü%=", "a b/ü%="),
        (Primitive("long"), -5, "-5"),
        (Primitive("boolean"), False, "false"),
        (Primitive("date"), -1, "1969-12-31"),
        (DecimalType(10, 3), Decimal("1.5"), "1.500"),
        (DecimalType(38, 2), Decimal("-123456789012345678901234567890123456.78"), None),
        (TIMESTAMP, 1, "1970-01-01T00:00:00.000001Z"),
        (NTZ, -1, "1969-12-31 23:59:59.999999"),
    ],
)
def test_partition_values_are_text_in_deltas_way(kind: Type, value: Any, text: str | None) -> None:
    assert partition_text(kind, value) == (text or str(value))
    assert partition_text(kind, None) is None


def test_a_partition_value_beyond_the_calendar_is_refused() -> None:
    with pytest.raises(UnsupportedFeature):
        partition_text(Primitive("date"), 10**7)


@pytest.mark.parametrize(
    ("kind", "value", "low", "up"),
    [
        (Primitive("int"), 5, 5, 5),
        (DOUBLE, 1.5, 1.5, 1.5),
        (DOUBLE, math.inf, None, None),
        (DOUBLE, math.nan, None, None),
        (Primitive("date"), 0, "1970-01-01", "1970-01-01"),
        (Primitive("date"), 10**7, None, None),
        (TIMESTAMP, 1, "1970-01-01T00:00:00.000Z", "1970-01-01T00:00:00.001Z"),
        (TIMESTAMP, -1, "1969-12-31T23:59:59.999Z", "1970-01-01T00:00:00.000Z"),
        (NTZ, 1000, "1970-01-01T00:00:00.001", "1970-01-01T00:00:00.001"),
        (NTZ, MICROS_9999, "9999-12-31T23:59:59.999", "9999-12-31T23:59:59.999999"),
        (NTZ, MICROS_9999 + 1, None, None),
        (Primitive("boolean"), True, True, True),
    ],
)
def test_bounds_never_lie_and_are_left_out_when_they_would(
    kind: Type, value: Any, low: Any, up: Any
) -> None:
    encoders = bound_encoders(kind)

    assert encoders is not None
    assert (encoders[0](value), encoders[1](value)) == (low, up)


def test_zero_bounds_cover_both_zeros() -> None:
    encoders = bound_encoders(DOUBLE)

    assert encoders is not None
    assert str(encoders[0](0.0)) == "-0.0"
    assert str(encoders[1](-0.0)) == "0.0"


@pytest.mark.parametrize("name", ["binary", "uuid"])
def test_some_types_have_no_bounds(name: str) -> None:
    assert bound_encoders(Primitive(name)) is None


NESTED = "p int, s struct<x: string, d: decimal(20,2)>, f double, l list<int>, b boolean, y binary"


def stats_of(**changed: ColumnStats) -> str | None:
    schema = schema_of(NESTED)
    ids = {".".join(f.name for f in schema.path_of(g.id)): g.id for g in schema.walk()}
    stats = {
        "p": ColumnStats(2, 0, None, None, 1, 1),
        "s.x": ColumnStats(2, 1, None, None, "a", "b"),
        "s.d": ColumnStats(2, 0, None, None, Decimal("1.10"), Decimal("123456789012345678.90")),
        "f": ColumnStats(2, 0, 0, None, 0.5, 1.5),
        "l.element": ColumnStats(9, 3, None, None, 1, 2),
        "b": ColumnStats(2, 0, None, None, False, True),
        "y": ColumnStats(2, 0, None, None, b"a", b"b"),
        **changed,
    }
    by_id = {FieldId(ids[name]): each for name, each in stats.items()}
    file = DataFile("data/f", 10, 2, SpecId(0), (1,), by_id)
    live = LiveFile(FileId(1), file, Version(0), None, 1, SnapshotId(1), None)
    add = add_of(layout_of(first_state(schema, ("p",))), live, {}, time_ms=7)
    assert add.partition_values == {"p": "1"}
    return add.stats


def test_statistics_are_nested_exact_and_leave_out_partitions_lists_and_binary() -> None:
    assert stats_of() == (
        '{"numRecords":2,"minValues":{"s":{"x":"a","d":1.10},"f":0.5,"b":false},'
        '"maxValues":{"s":{"x":"b","d":123456789012345678.90},"f":1.5,"b":true},'
        '"nullCount":{"s":{"x":1,"d":0},"f":0,"b":0,"y":0},"tightBounds":true}'
    )


@pytest.mark.parametrize(
    "stats",
    [
        ColumnStats(2, 0, 1, None, 0.5, 0.5),  # a NaN beside 0.5
        ColumnStats(2, 0, None, None, 0.5, 1.5),  # NaN or not: unknown
        ColumnStats(2, 0, 0, None, 0.5, math.inf),
        ColumnStats(2, 0, 0, None, 0.5, None),
        ColumnStats(2, None, 0, None, 0.5, 1.5),
    ],
)
def test_one_column_without_true_bounds_takes_the_bounds_of_the_file_away(
    stats: ColumnStats,
) -> None:
    text = stats_of(f=stats)

    assert text is not None
    shown = json.loads(text)
    assert shown.keys() == {"numRecords", "nullCount", "tightBounds"}
    assert shown["nullCount"]["b"] == 0


def test_a_column_of_nulls_needs_no_bounds() -> None:
    text = stats_of(f=ColumnStats(2, 2, 0))

    assert text is not None
    assert json.loads(text)["minValues"].keys() == {"s", "b"}
