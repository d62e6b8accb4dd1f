"""Every Arrow type has a decision, and model types keep their ids and names in Arrow."""

import pyarrow as pa
import pytest

from lakebed.engines.arrow.types import ARROW_TYPES, ArrowType, fields_from_arrow, to_arrow
from lakebed.model.errors import InvalidSchema, LakebedError, UnsupportedFeature
from lakebed.model.schema import new_schema
from lakebed.model.schema_text import parse_schema
from lakebed.model.types import DecimalType, FixedType, ListType, StructType

# Arrow knows these, but pyarrow cannot make them.
UNMADE = {"Type_INTERVAL_DAY_TIME", "Type_INTERVAL_MONTHS"}
EVERYTHING = """
    a boolean, b byte, c short, d int not null, e long, f float, g double, h decimal(38,2), i date,
    j time, k timestamp, l timestamp_ntz, m timestamp_ns, n timestamptz_ns, o string, p uuid,
    q binary, r fixed(3), s struct<x int not null, y list<string not null>>,
    t map<string, struct<z double>>
"""


def test_every_kind_of_arrow_type_is_listed() -> None:
    known = {getattr(pa.lib, name) for name in dir(pa.lib) if name.startswith("Type_")}
    unmade = {getattr(pa.lib, name) for name in UNMADE}

    assert known - unmade <= {entry.sample.id for entry in ARROW_TYPES}


@pytest.mark.parametrize("entry", ARROW_TYPES, ids=lambda e: e.arrow)
def test_an_arrow_type_becomes_what_the_list_says(entry: ArrowType) -> None:
    schema = pa.schema([pa.field("c", entry.sample)])

    if entry.becomes is not None:
        assert str(fields_from_arrow(schema)[0].type) == entry.becomes
        return
    with pytest.raises((InvalidSchema, UnsupportedFeature)) as refusal:
        fields_from_arrow(schema)
    assert "'c'" in refusal.value.message
    assert refusal.value.hint
    assert refusal.value.context["column"] == "c"


@pytest.mark.parametrize(
    "kind",
    [
        pa.struct([]),
        pa.list_(pa.struct([])),
        pa.binary(0),
        pa.decimal128(5, -2),
        pa.map_(pa.string(), pa.null()),
        pa.struct([pa.field("x", pa.duration("s"))]),
    ],
    ids=str,
)
def test_an_odd_type_is_refused_with_its_path(kind: pa.DataType) -> None:
    with pytest.raises(LakebedError) as refusal:
        fields_from_arrow(pa.schema([pa.field("c", kind)]))

    assert refusal.value.hint
    assert str(refusal.value.context["column"]).startswith("c")


def test_required_and_comments_come_from_arrow() -> None:
    inner = pa.field("x", pa.int8(), nullable=False, metadata={"comment": "inner"})
    items = pa.list_(pa.field("item", pa.struct([inner]), nullable=False))
    schema = pa.schema([pa.field("a", items, nullable=False, metadata={b"comment": "größe"})])

    (field,) = fields_from_arrow(schema)

    assert (field.required, field.doc) == (True, "größe")
    assert isinstance(field.type, ListType)
    assert field.type.element_required
    assert isinstance(field.type.element, StructType)
    assert field.type.element.fields[0].doc == "inner"


def test_a_schema_survives_the_way_through_arrow() -> None:
    schema = new_schema(parse_schema(EVERYTHING.replace("m timestamp_ns, n timestamptz_ns,", "")))

    back = new_schema(fields_from_arrow(to_arrow(schema, physical=True)))

    assert back == schema


def test_physical_fields_carry_their_ids_at_every_level() -> None:
    schema = new_schema(parse_schema(EVERYTHING))

    ids = set(_ids(to_arrow(schema, physical=True)))

    assert ids == {field.id for field in schema.walk()}


def test_physical_names_are_those_of_the_files() -> None:
    schema = new_schema(parse_schema("`a b` int, s struct<`c d` int>"))

    plain, physical = to_arrow(schema), to_arrow(schema, physical=True)

    assert plain.names == ["a b", "s"]
    assert plain.field("s").type.field(0).name == "c d"
    assert physical.names == [schema.fields[0].physical, "s"]
    assert physical.field("s").type.field(0).name == "col_3"


def test_lists_and_maps_use_the_names_both_formats_expect() -> None:
    schema = to_arrow(new_schema(parse_schema("l list<int>, m map<string, int not null>")))

    assert schema.field("l").type.value_field.name == "element"
    assert schema.field("m").type.key_field.name == "key"
    assert schema.field("m").type.item_field == pa.field("value", pa.int32(), nullable=False)


def test_uuid_is_annotated_only_in_files() -> None:
    schema = new_schema(parse_schema("u uuid, f fixed(16)"))

    assert to_arrow(schema).field("u").type == pa.binary(16)
    assert to_arrow(schema, physical=True).field("u").type == pa.uuid()
    assert to_arrow(schema, physical=True).field("f").type == pa.binary(16)


def test_scalar_types_are_told_apart() -> None:
    fields = fields_from_arrow(pa.schema({"d": pa.decimal64(9, 3), "f": pa.binary(4)}))

    assert [f.type for f in fields] == [DecimalType(9, 3), FixedType(4)]
    assert [f.id for f in fields] == [0, 0]


def _ids(fields: object) -> list[int]:
    found = []
    for field in fields:  # type: ignore[attr-defined]  # schemas and nested types are iterable
        found.append(int(field.metadata[b"PARQUET:field_id"]))
        kind = field.type
        if pa.types.is_struct(kind):
            found += _ids(kind)
        elif pa.types.is_list(kind):
            found += _ids([kind.value_field])
        elif pa.types.is_map(kind):
            found += _ids([kind.key_field, kind.item_field])
    return found
