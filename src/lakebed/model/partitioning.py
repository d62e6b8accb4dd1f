"""Partition specs and sort orders: `day(ts)`, `bucket(16, id)`, `region`, `amount desc`."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from lakebed.model.errors import InvalidSchema
from lakebed.model.ids import FieldId, SortOrderId, SpecId
from lakebed.model.schema import Schema
from lakebed.model.transforms import Transform, check_transform, result_type
from lakebed.model.types import Field, Type

_CALL = re.compile(r"^\s*(\w+)\s*\(\s*(?:(\d{1,10})\s*,)?\s*(.+?)\s*(?:,\s*(\d{1,10})\s*)?\)\s*$")
_TRANSFORMS = ("identity", "year", "month", "day", "hour", "bucket", "truncate")
FIRST_PARTITION_FIELD_ID = 1000
_NAME_SUFFIX = {"identity": "", "truncate": "_trunc", "bucket": "_bucket"}


@dataclass(frozen=True, slots=True)
class PartitionField:
    id: FieldId
    name: str
    source_id: FieldId
    transform: Transform


@dataclass(frozen=True, slots=True)
class PartitionSpec:
    id: SpecId
    fields: tuple[PartitionField, ...] = ()

    @property
    def is_identity(self) -> bool:
        return all(f.transform.name == "identity" for f in self.fields)

    def types(self, schema: Schema) -> tuple[Type, ...]:
        """The type of each partition value."""
        return tuple(result_type(f.transform, schema.field(f.source_id).type) for f in self.fields)


@dataclass(frozen=True, slots=True)
class SortField:
    source_id: FieldId
    transform: Transform
    descending: bool = False
    nulls_first: bool = True


@dataclass(frozen=True, slots=True)
class SortOrder:
    id: SortOrderId
    fields: tuple[SortField, ...] = ()


UNPARTITIONED = PartitionSpec(SpecId(0))
UNSORTED = SortOrder(SortOrderId(0))


def parse_spec(texts: tuple[str, ...], schema: Schema) -> PartitionSpec:
    fields: list[PartitionField] = []
    for number, text in enumerate(texts):
        source, transform = _term(text, schema)
        check_transform(transform, source.type, source.name)
        name = source.name + _NAME_SUFFIX.get(transform.name, f"_{transform.name}")
        if any(f.source_id == source.id and f.transform == transform for f in fields):
            raise InvalidSchema(f"the table is partitioned by {text!r} twice", hint="name it once")
        clash = schema.find((name,))
        if any(f.name == name for f in fields) or (clash is not None and clash.id != source.id):
            name += f"_{transform.width}" if transform.width else "_part"
        field_id = FieldId(FIRST_PARTITION_FIELD_ID + number)
        fields.append(PartitionField(field_id, name, source.id, transform))
    return PartitionSpec(SpecId(0), tuple(fields))


def evolve_spec(
    texts: tuple[str, ...], schema: Schema, specs: Sequence[PartitionSpec]
) -> PartitionSpec:
    """The spec the texts say, beside all that the table ever had.

    One that says the same is taken again; a field keeps its id and its name through all specs, as
    Iceberg asks, and no other field ever gets either.
    """
    known = {(f.source_id, f.transform): f for spec in specs for f in spec.fields}
    fields: list[PartitionField] = []
    for field in parse_spec(texts, schema).fields:
        same = known.get((field.source_id, field.transform))
        if same is None:
            taken = {f.name.casefold() for f in known.values()}
            name = field.name
            while name.casefold() in taken:
                name += f"_{field.transform.width}" if field.transform.width else "_part"
            number = max((f.id for f in known.values()), default=FIRST_PARTITION_FIELD_ID - 1) + 1
            same = replace(field, id=FieldId(number), name=name)
            known[field.source_id, field.transform] = same
        fields.append(same)
    for spec in specs:
        if spec.fields == tuple(fields):
            return spec
    return PartitionSpec(SpecId(max(s.id for s in specs) + 1), tuple(fields))


def evolve_sort_order(
    texts: tuple[str, ...], schema: Schema, orders: Sequence[SortOrder]
) -> SortOrder:
    """Likewise; the order of no fields is always number 0."""
    wanted = parse_sort_order(texts, schema)
    if not wanted.fields:
        return UNSORTED
    for order in orders:
        if order.fields == wanted.fields:
            return order
    return replace(wanted, id=SortOrderId(max((o.id for o in orders), default=0) + 1))


def parse_sort_order(texts: tuple[str, ...], schema: Schema) -> SortOrder:
    fields = []
    for text in texts:
        words = text.split()
        descending, nulls_first = False, None
        if [w.lower() for w in words[-2:]] in (["nulls", "first"], ["nulls", "last"]):
            nulls_first = words[-1].lower() == "first"
            words = words[:-2]
        if words and words[-1].lower() in ("asc", "desc"):
            descending = words.pop().lower() == "desc"
        source, transform = _term(" ".join(words), schema)
        check_transform(transform, source.type, source.name)
        first = not descending if nulls_first is None else nulls_first
        fields.append(SortField(source.id, transform, descending, first))
    return SortOrder(SortOrderId(1 if fields else 0), tuple(fields))


def _term(text: str, schema: Schema) -> tuple[Field, Transform]:
    whole = schema.find((text.strip(),))
    call = None if whole is not None else _CALL.match(text)
    column, transform = text.strip(), Transform("identity")
    if call is not None:
        name, before, column, after = call.groups()
        transform = Transform(_transform_name(name), int(before or after or 0))
    field = whole or schema.find(tuple(p.strip('`"') for p in column.split(".")))
    if field is None:
        raise InvalidSchema(
            f"column {column!r} of {text!r} is not in the schema",
            hint=f"the columns are: {', '.join(f.name for f in schema.fields)}",
            column=column,
        )
    return field, transform


def _transform_name(name: str) -> str:
    lowered = name.lower()
    singular = lowered[:-1] if lowered.endswith("s") and lowered != "s" else lowered
    if singular not in _TRANSFORMS:
        raise InvalidSchema(
            f"unknown partition transform {name!r}",
            hint=f"known transforms: {', '.join(_TRANSFORMS)}",
        )
    return singular


def partition_terms(spec: PartitionSpec, schema: Schema) -> list[str]:
    """The texts that `parse_spec` reads."""
    return [_term_text(f.transform, _path(schema, f.source_id)) for f in spec.fields]


def sort_terms(order: SortOrder, schema: Schema) -> list[str]:
    return [
        f"{_term_text(f.transform, _path(schema, f.source_id))} {'desc' if f.descending else 'asc'}"
        f" nulls {'first' if f.nulls_first else 'last'}"
        for f in order.fields
    ]


def _path(schema: Schema, field_id: int) -> str:
    return ".".join(field.name for field in schema.path_of(field_id))


def _term_text(transform: Transform, column: str) -> str:
    if transform.name == "identity":
        return column
    return f"{transform.name}({f'{transform.width}, ' if transform.width else ''}{column})"


def spec_to_record(spec: PartitionSpec) -> dict[str, Any]:
    fields = [[f.id, f.name, f.source_id, f.transform.name, f.transform.width] for f in spec.fields]
    return {"id": spec.id, "fields": fields}


def spec_from_record(record: dict[str, Any]) -> PartitionSpec:
    return PartitionSpec(
        SpecId(record["id"]),
        tuple(
            PartitionField(FieldId(i), name, FieldId(source), Transform(transform, width))
            for i, name, source, transform, width in record["fields"]
        ),
    )


def order_to_record(order: SortOrder) -> dict[str, Any]:
    fields = [
        [f.source_id, f.transform.name, f.transform.width, f.descending, f.nulls_first]
        for f in order.fields
    ]
    return {"id": order.id, "fields": fields}


def order_from_record(record: dict[str, Any]) -> SortOrder:
    return SortOrder(
        SortOrderId(record["id"]),
        tuple(
            SortField(FieldId(source), Transform(name, width), descending, nulls_first)
            for source, name, width, descending, nulls_first in record["fields"]
        ),
    )
