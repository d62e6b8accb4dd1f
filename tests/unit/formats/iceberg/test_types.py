"""Our JSON is Iceberg's: pyiceberg parses every schema, spec, order and name mapping we render."""

import json
from typing import Any

import pytest
from pyiceberg.partitioning import PartitionSpec as PeerSpec
from pyiceberg.schema import Schema as PeerSchema
from pyiceberg.table.name_mapping import parse_mapping_from_json
from pyiceberg.table.sorting import SortOrder as PeerOrder

from lakebed.formats.iceberg import types
from lakebed.model.errors import DataCorrupt
from lakebed.model.ids import FieldId, SchemaId
from lakebed.model.partitioning import parse_sort_order, parse_spec
from lakebed.model.schema import Schema, new_schema
from lakebed.model.schema_text import parse_schema
from lakebed.model.types import DecimalType, Field, FixedType, Primitive

EVERYTHING = (
    "b boolean, i8 byte, i16 short, i int, l long not null, f float, d double, day date, t time, "
    "ts timestamp, ntz timestamp_ntz, ns timestamp_ns, tzns timestamptz_ns, s string, u uuid, "
    "fx fixed(5), bin binary, dec decimal(9,2), st struct<x: int not null, `y y`: list<string>>, "
    "li list<struct<z: double>>, m map<string, list<long not null> not null>"
)


def schema_of(text: str, **options: Any) -> Schema:
    return new_schema(parse_schema(text), **options)


def peer(schema: Schema) -> PeerSchema:
    return PeerSchema.model_validate(types.schema_json(schema, 2))


def test_every_type_is_understood_by_pyiceberg() -> None:
    found = {f.name: str(f.field_type) for f in peer(schema_of(EVERYTHING)).fields}

    assert {k: v for k, v in found.items() if k not in ("st", "li", "m")} == {
        "b": "boolean",
        "i8": "int",
        "i16": "int",
        "i": "int",
        "l": "long",
        "f": "float",
        "d": "double",
        "day": "date",
        "t": "time",
        "ts": "timestamptz",
        "ntz": "timestamp",
        "ns": "timestamp_ns",
        "tzns": "timestamptz_ns",
        "s": "string",
        "u": "uuid",
        "fx": "fixed[5]",
        "bin": "binary",
        "dec": "decimal(9, 2)",
    }


def test_nested_fields_keep_ids_names_and_nullability() -> None:
    schema = schema_of(EVERYTHING)

    by_peer = {
        i: peer(schema).find_column_name(i).rsplit(".", 1)[-1]  # type: ignore[union-attr]
        for i in [int(f.id) for f in schema.walk()]
    }

    assert by_peer == {int(f.id): f.name for f in schema.walk()}
    for field in schema.walk():
        assert peer(schema).find_field(int(field.id)).required == field.required


def test_comments_of_columns_travel() -> None:
    schema = schema_of("id long comment 'the key'")

    assert peer(schema).find_field("id").doc == "the key"


def test_a_primary_key_becomes_identifier_fields() -> None:
    schema = schema_of("b string, a long", primary_key=("a", "b"))

    assert peer(schema).identifier_field_ids == [1, 2]


@pytest.mark.parametrize(
    "field",
    [
        Field(FieldId(1), "a", Primitive("double"), required=True),
        Field(FieldId(1), "a", Primitive("long"), required=False),
    ],
)
def test_a_key_that_iceberg_forbids_is_left_out(field: Field) -> None:
    schema = Schema(SchemaId(0), (field,), (FieldId(1),))

    assert "identifier-field-ids" not in types.schema_json(schema, 2)


def test_partition_specs_and_sort_orders_are_understood() -> None:
    schema = schema_of(EVERYTHING)
    texts = (
        "i",
        "bucket(16, s)",
        "truncate(8, s)",
        "year(ts)",
        "month(day)",
        "day(ntz)",
        "hour(ns)",
    )

    spec = PeerSpec.model_validate(types.spec_json(parse_spec(texts, schema)))
    order = PeerOrder.model_validate(
        types.sort_order_json(parse_sort_order(("s desc", "bucket(4, l) nulls last"), schema))
    )

    assert [str(f.transform) for f in spec.fields] == [
        "identity",
        "bucket[16]",
        "truncate[8]",
        "year",
        "month",
        "day",
        "hour",
    ]
    assert [str(f) for f in order.fields] == [
        "14 DESC NULLS LAST",
        "bucket[4](5) ASC NULLS LAST",
    ]


def test_the_name_mapping_has_physical_names_at_every_level() -> None:
    schema = schema_of("`a b` int, st struct<`c d`: map<string, list<int>>>")

    mapping = parse_mapping_from_json(types.name_mapping_json(schema))

    assert [str(each) for each in mapping.root] == [
        "([col_1] -> 1)",
        "([st] -> 2 ([col_3] -> 3 ([key] -> 4), ([value] -> 5 ([element] -> 6))))",
    ]
    assert "a b" not in types.name_mapping_json(schema)


def test_leaf_types_are_read_back() -> None:
    schema = schema_of(EVERYTHING)
    plain = json.loads(json.dumps(types.schema_json(schema, 2)))

    found = types.leaf_types(plain)

    narrowed = {"byte": "int", "short": "int"}
    for field in schema.walk():
        if isinstance(field.type, Primitive):
            name = field.type.name
            assert found[field.id] == Primitive(narrowed.get(name, name))
        elif isinstance(field.type, DecimalType | FixedType):
            assert found[field.id] == field.type


def test_types_from_the_future_are_left_out() -> None:
    plain = {"type": "struct", "fields": [{"id": 1, "type": "variant"}, {"id": 2, "type": "int"}]}

    assert types.leaf_types(plain) == {2: Primitive("int")}


@pytest.mark.parametrize("plain", [{}, {"type": "struct"}, {"type": "x"}, {"type": "list"}])
def test_a_broken_schema_is_corrupt_data(plain: dict[str, object]) -> None:
    with pytest.raises(DataCorrupt):
        types.leaf_types(plain)


def test_partition_types_are_read_back() -> None:
    schema = schema_of("i int, ts timestamp, s string")
    texts = ("i", "day(ts)", "year(ts)", "bucket(4, s)", "truncate(3, s)")
    fields = types.spec_fields_json(parse_spec(texts, schema))
    leaves = types.leaf_types(types.schema_json(schema, 2))

    found = types.partition_kinds([*fields, {"transform": "void", "source-id": 1}], leaves)

    assert [str(kind) for kind in found] == ["int", "date", "int", "int", "string", "None"]
