"""Which files hold rows of some partitions, though they may be partitioned otherwise. Pure."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from lakebed.core.domains import Domain, domain_of, less
from lakebed.model.expressions import Column
from lakebed.model.files import LiveFile
from lakebed.model.partitioning import PartitionField, PartitionSpec
from lakebed.model.schema import Schema
from lakebed.model.transforms import apply
from lakebed.model.types import DecimalType, FixedType, Primitive, Stored

Values = tuple[Stored | None, ...]


@dataclass(frozen=True, slots=True)
class _Reach:
    """The partition values that rows of a file may have, for one field."""

    nulls: bool
    nans: bool
    values: bool
    low: Stored | None = None  # None: unknown
    high: Stored | None = None

    def may_be(self, value: Stored | None) -> bool:
        if value is None:
            return self.nulls
        if value != value:  # noqa: PLR0124 - NaN alone
            return self.nans
        above = self.low is None or not less(value, self.low)
        return self.values and above and (self.high is None or not less(self.high, value))

    @property
    def is_single(self) -> bool:
        if self.nulls + self.nans + self.values != 1:
            return False
        return not self.values or (self.low is not None and self.low == self.high)


def in_partitions(
    live: Sequence[LiveFile],
    written: Collection[Values],
    *,
    spec: PartitionSpec,
    specs: Mapping[int, PartitionSpec],
    schema: Schema,
) -> tuple[list[LiveFile], list[LiveFile]]:
    """Files all of whose rows fall into the partitions written, and files some of whose rows may.

    A file of the spec itself is in one partition; of others statistics and values tell.
    """
    whole: list[LiveFile] = []
    part: list[LiveFile] = []
    for file in live:
        if file.file.spec_id == spec.id:
            if file.file.partition in written:
                whole.append(file)
            continue
        reaches = [_reach(f, file, specs.get(file.file.spec_id), schema) for f in spec.fields]
        if any(all(r.may_be(v) for r, v in zip(reaches, p, strict=True)) for p in written):
            (whole if all(r.is_single for r in reaches) else part).append(file)
    return whole, part


def _reach(
    field: PartitionField, live: LiveFile, spec: PartitionSpec | None, schema: Schema
) -> _Reach:
    source = schema.field(field.source_id)
    kind = source.type
    assert isinstance(kind, Primitive | DecimalType | FixedType), "only scalars partition"
    path = tuple(f.name for f in schema.path_of(field.source_id))
    domain = domain_of(Column(path, field.source_id, kind), live.file, spec, schema)
    low, high = domain.low, domain.high
    if field.transform.name == "bucket":
        same = [value for t, value in domain.buckets if t == field.transform]
        if same:
            low = high = same[0]
        elif low is None or low != high:
            low = high = None
        else:
            low = high = apply(field.transform, kind, low)
    else:  # the others keep the order of values
        low, high = apply(field.transform, kind, low), apply(field.transform, kind, high)
    return _filled(domain, low, high)


def _filled(domain: Domain, low: Stored | None, high: Stored | None) -> _Reach:
    return _Reach(domain.nulls, domain.nans, domain.values, low, high)
