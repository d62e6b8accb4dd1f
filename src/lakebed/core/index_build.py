"""Makes chunks of the index of files: what each file can hold of each field, as arrays. Pure."""

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lakebed.core.domains import Domain, domain_of
from lakebed.core.index_keys import FIRST, HIGHEST, LAST, LOWEST, common_prefix, key_of, word_of
from lakebed.core.index_probe import NANS, NULLS, VALUES, bucket_id
from lakebed.meta.files import Typing
from lakebed.meta.index import Bounds, Entry, Zone
from lakebed.model.expressions import Column
from lakebed.model.files import DataFile
from lakebed.model.ids import FieldId, FileId, SchemaId
from lakebed.model.partitioning import PartitionSpec
from lakebed.model.schema import Schema
from lakebed.model.types import DecimalType, FixedType, Primitive

_ANYTHING = NULLS | NANS | VALUES
# What a version's schema requires is looked at when a plan is made: without one, more is possible.
_NO_SCHEMA = Schema(SchemaId(0), ())


@dataclass(slots=True)
class _Known:
    """Of one field: the least and greatest key of each file, and what it can hold. By place."""

    lows: dict[int, bytes] = field(default_factory=dict)
    highs: dict[int, bytes] = field(default_factory=dict)
    flags: dict[int, int] = field(default_factory=dict)

    def add(self, place: int, domain: Domain) -> None:
        self.flags[place] = (
            (NULLS if domain.nulls else 0)
            | (NANS if domain.nans else 0)
            | (VALUES if domain.values else 0)
        )
        if domain.values:
            self.lows[place] = FIRST if domain.low is None else key_of(domain.low)
            self.highs[place] = LAST if domain.high is None else key_of(domain.high)


def entries_of(
    chunk: int,
    width: int,
    files: Sequence[tuple[FileId, DataFile]],
    typing: Typing,
    specs: Mapping[int, PartitionSpec],
) -> list[Entry]:
    """A chunk of files, of which some ids may be missing: those can hold nothing."""
    filled = [(i - chunk * width, f) for i, f in files if f.record_count]
    entries = []
    for column in _columns(filled, typing, specs):
        known = _Known()
        for place, file in filled:
            known.add(place, domain_of(column, file, specs.get(file.spec_id), _NO_SCHEMA))
        entries.append(_entry(column.field_id or 0, chunk, width, known))
    for partition_id in _bucket_fields(filled, specs):
        known = _Known()
        for place, file in filled:
            known.add(place, _bucket(partition_id, file, specs.get(file.spec_id)))
        entries.append(_entry(bucket_id(partition_id), chunk, width, known))
    return [e for e in entries if e.zone != Zone(FIRST, LAST, _ANYTHING)]


def _columns(
    filled: Iterable[tuple[int, DataFile]], typing: Typing, specs: Mapping[int, PartitionSpec]
) -> list[Column]:
    """The columns of which any file knows something."""
    ids: set[int] = set()
    for _, file in filled:
        ids.update(file.stats.keys())
    for spec_id in {f.spec_id for _, f in filled} & specs.keys():
        ids.update(f.source_id for f in specs[spec_id].fields)
    found = []
    for field_id in sorted(ids & typing.leaves.keys()):
        kind = typing.leaves[field_id]
        assert isinstance(kind, Primitive | DecimalType | FixedType)
        found.append(Column((str(field_id),), FieldId(field_id), kind))
    return found


def _bucket_fields(
    filled: Iterable[tuple[int, DataFile]], specs: Mapping[int, PartitionSpec]
) -> list[int]:
    used = [specs[i] for i in {f.spec_id for _, f in filled} & specs.keys()]
    return sorted({f.id for s in used for f in s.fields if f.transform.name == "bucket"})


def _bucket(partition_id: int, file: DataFile, spec: PartitionSpec | None) -> Domain:
    for part, value in zip(spec.fields if spec else (), file.partition, strict=False):
        if part.id == partition_id:
            if value is None:
                return Domain(nans=False, values=False)
            return Domain(nulls=False, nans=False, low=value, high=value)
    return Domain()


def _prefix(keys: list[bytes]) -> bytes:
    """Of nearly all keys: few that are different must not blur all others."""
    told = sorted(k for k in keys if k not in (FIRST, LAST))
    few = len(told) // 10
    return common_prefix(told[few], told[-1 - few]) if told else b""


def _entry(field_id: int, chunk: int, width: int, known: _Known) -> Entry:
    low = min(known.lows.values(), default=LAST)
    high = max(known.highs.values(), default=FIRST)
    prefix = _prefix([*known.lows.values(), *known.highs.values()])
    lows, highs, flags = [HIGHEST] * width, [LOWEST] * width, bytearray(width)
    together = 0
    for place, held in known.flags.items():
        flags[place] = held
        together |= held
    for place, key in known.lows.items():
        lows[place] = LOWEST if key == FIRST else word_of(key, prefix)
    for place, key in known.highs.items():
        highs[place] = HIGHEST if key == LAST else word_of(key, prefix)
    words = struct.Struct(f"<{width}Q")
    bounds = Bounds(prefix, bytes(flags), words.pack(*lows), words.pack(*highs))
    return Entry(field_id, chunk, Zone(low, high, together), bounds)
