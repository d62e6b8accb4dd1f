"""Schemas changed at a path: ids, names in files, and what is refused."""

import pytest

from lakebed.model.errors import InvalidInput, InvalidSchema
from lakebed.model.evolution import (
    Place,
    add,
    comment,
    drop,
    find_path,
    make_optional,
    move,
    parse_path,
    rename,
    taken_names,
    widen,
)
from lakebed.model.ids import FieldId
from lakebed.model.partitioning import UNPARTITIONED, evolve_sort_order, evolve_spec, parse_spec
from lakebed.model.schema import Schema, files_fit, new_schema
from lakebed.model.schema_record import schema_from_record, schema_to_record
from lakebed.model.schema_text import parse_schema, parse_type
from lakebed.model.types import Field, Primitive, Widening, walk

TEXT = (
    "id long not null, s struct<x: int, y: string>, l list<struct<p: float>>,"
    " m map<string, struct<v: int>>"
)


@pytest.fixture
def schema() -> Schema:
    return new_schema(parse_schema(TEXT))


def _new(name: str, kind: str = "string") -> Field:
    return Field(FieldId(0), name, parse_type(kind))


def _names(schema: Schema, *path: str) -> list[str]:
    return [f.name for f in find_path(schema.fields, path)[-1].type.fields]  # type: ignore[union-attr]


@pytest.mark.parametrize("parent", [(), ("s",), ("l", "element"), ("m", "value")])
def test_a_field_is_added_at_every_depth_with_a_fresh_id(
    schema: Schema, parent: tuple[str, ...]
) -> None:
    before = {f.id for f in schema.walk()}

    fields, last = add(
        schema.fields, parent, _new("z"), taken=frozenset(), last=schema.last_column_id
    )

    added = find_path(fields, (*parent, "z"))[-1]
    assert (added.id, added.physical) == (last, "z")
    assert {f.id for f in walk(fields)} == before | {last}


def test_a_name_dropped_and_added_again_gets_another_name_in_files(schema: Schema) -> None:
    taken = taken_names([schema])[find_path(schema.fields, ("s",))[-1].id]
    fields = drop(schema.fields, ("s", "x"))

    fields, last = add(fields, ("s",), _new("X"), taken=taken, last=schema.last_column_id)

    assert find_path(fields, ("s", "X"))[-1].physical == f"col_{last}"


def test_members_are_renamed_and_moved_within_their_level(schema: Schema) -> None:
    fields = rename(schema.fields, ("s", "x"), "z")
    fields = move(fields, ("s", "y"), Place(first=True))
    fields = move(fields, ("m",), Place(after="id"))
    fields = move(fields, ("l",), Place(before="m"))

    assert [f.name for f in fields] == ["id", "l", "m", "s"]
    assert _names(Schema(schema.id, fields), "s") == ["y", "z"]
    assert find_path(fields, ("s", "z"))[-1].physical == "x"


@pytest.mark.parametrize(
    "path", [("nope",), ("s", "nope"), ("id", "x"), ("l", "p"), ("m", "key"), ("m", "key", "x")]
)
def test_what_is_not_there_or_never_changes_is_refused(
    schema: Schema, path: tuple[str, ...]
) -> None:
    with pytest.raises(InvalidSchema) as caught:
        rename(schema.fields, path, "z")

    assert caught.value.hint


@pytest.mark.parametrize("path", [("l", "element"), ("m", "value")])
def test_elements_of_lists_and_maps_have_no_names_of_their_own(
    schema: Schema, path: tuple[str, ...]
) -> None:
    with pytest.raises(InvalidSchema, match="no struct"):
        rename(schema.fields, path, "z")
    with pytest.raises(InvalidSchema, match="no struct"):
        drop(schema.fields, path)
    with pytest.raises(InvalidSchema, match="no struct"):
        comment(schema.fields, path, "x")
    with pytest.raises(InvalidSchema, match="no struct"):
        move(schema.fields, path, Place(first=True))


def test_the_last_member_of_a_struct_stays(schema: Schema) -> None:
    with pytest.raises(InvalidSchema, match="only column"):
        drop(schema.fields, ("l", "element", "p"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("byte", "short"),
        ("byte", "long"),
        ("short", "int"),
        ("int", "long"),
        ("float", "double"),
        ("decimal(9,2)", "decimal(18,2)"),
    ],
)
def test_a_type_becomes_one_that_both_formats_call_wider(old: str, new: str) -> None:
    before = new_schema(parse_schema(f"c {old}, l list<{old} not null>"))

    fields = widen(before.fields, ("c",), parse_type(new))
    fields = widen(fields, ("l", "element"), parse_type(new))

    after = Schema(before.id, fields)
    kinds = parse_type(old), parse_type(new)
    assert [f.widened for f in fields] == [(Widening("", *kinds),), (Widening("element", *kinds),)]  # type: ignore[arg-type]
    assert str(fields[1].type) == f"list<{new} not null>"
    assert files_fit(before, after)
    assert not files_fit(after, before)
    assert schema_from_record(schema_to_record(after)) == after


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("long", "int"),
        ("int", "double"),
        ("int", "decimal(10,0)"),
        ("double", "float"),
        ("decimal(9,2)", "decimal(12,3)"),
        ("decimal(9,2)", "decimal(8,2)"),
        ("date", "timestamp_ntz"),
        ("string", "binary"),
        ("timestamp", "timestamp_ntz"),
        ("int", "struct<a: int>"),
    ],
)
def test_other_changes_of_type_are_refused_with_a_hint(old: str, new: str) -> None:
    schema = new_schema(parse_schema(f"c {old}"))

    with pytest.raises(InvalidSchema, match="cannot be widened") as caught:
        widen(schema.fields, ("c",), parse_type(new))

    assert caught.value.hint


def test_required_elements_become_optional() -> None:
    schema = new_schema(parse_schema("l list<int not null>, m map<string, int not null>"))

    fields = make_optional(schema.fields, ("l", "element"))
    fields = make_optional(fields, ("m", "value"))

    assert [str(f.type) for f in fields] == ["list<int>", "map<string, int>"]
    with pytest.raises(InvalidSchema):
        make_optional(fields, ("m", "key"))


@pytest.mark.parametrize("path", [5, None, (), ["a", 5], b"a"])
def test_a_path_is_text_or_a_list_of_texts(path: object) -> None:
    with pytest.raises(InvalidInput):
        parse_path(path)  # type: ignore[arg-type]


def test_one_place_at_a_time(schema: Schema) -> None:
    with pytest.raises(InvalidInput):
        Place(first=True, after="id")
    with pytest.raises(InvalidInput, match="itself"):
        move(schema.fields, ("id",), Place(after="id"))


def test_records_of_before_still_parse() -> None:
    old = {"id": 0, "fields": [{"id": 1, "name": "a", "type": "int"}], "primary-key": []}

    (field,) = schema_from_record(old).fields

    assert (field.initial_default, field.write_default, field.widened) == (None, None, ())
    assert schema_to_record(schema_from_record(old)) == old


def test_partition_fields_keep_their_ids_through_all_specs() -> None:
    schema = new_schema(parse_schema("id long, p string, ts timestamp"))
    first = parse_spec(("p", "bucket(4, id)"), schema)

    second = evolve_spec(("day(ts)", "bucket(4, id)"), schema, [first])
    third = evolve_spec(("bucket(8, id)", "p"), schema, [first, second])

    assert [(f.id, f.name) for f in first.fields] == [(1000, "p"), (1001, "id_bucket")]
    assert [(f.id, f.name) for f in second.fields] == [(1002, "ts_day"), (1001, "id_bucket")]
    assert [(f.id, f.name) for f in third.fields] == [(1003, "id_bucket_8"), (1000, "p")]
    assert [first.id, second.id, third.id] == [0, 1, 2]
    assert evolve_spec(("p", "bucket(4, id)"), schema, [first, second, third]) == first
    assert evolve_spec((), schema, [UNPARTITIONED]) == UNPARTITIONED


def test_sort_orders_are_numbered_and_taken_again() -> None:
    schema = new_schema(parse_schema("id long, p string"))
    first = evolve_sort_order(("id",), schema, [])
    second = evolve_sort_order(("p desc",), schema, [first])

    assert (first.id, second.id) == (1, 2)
    assert evolve_sort_order(("id asc",), schema, [first, second]) == first
    assert evolve_sort_order((), schema, [first]).id == 0
    assert schema.fields[0].type == Primitive("long")
