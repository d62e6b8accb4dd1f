"""A snapshot as metadata files list it: rendered once, though hundreds in a row list it."""

from functools import lru_cache

import orjson

from lakebed.formats.iceberg.types import Json
from lakebed.model.history import Snapshot

_KEPT = 4096


def snapshot_text(snapshot: Snapshot, location: str, *, has_parent: bool) -> orjson.Fragment:
    return _rendered(_Same(snapshot), location, has_parent)


class _Same:
    """Stands for one object: what is in it need not be compared to know it again."""

    __slots__ = ("snapshot",)

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.snapshot is other.snapshot

    def __hash__(self) -> int:
        return id(self.snapshot)


@lru_cache(maxsize=_KEPT)
def _rendered(same: _Same, location: str, has_parent: bool) -> orjson.Fragment:
    snapshot = same.snapshot
    plain: Json = {"sequence-number": snapshot.sequence_number, "snapshot-id": snapshot.id}
    if has_parent:
        plain["parent-snapshot-id"] = snapshot.parent_id
    plain |= {
        "timestamp-ms": snapshot.time_ms,
        "summary": {"operation": snapshot.operation, **snapshot.summary},
        "manifest-list": f"{location}/{snapshot.manifest_list}",
        "schema-id": snapshot.schema_id,
    }
    if snapshot.first_row_id is not None:
        plain["first-row-id"] = snapshot.first_row_id
        plain["added-rows"] = snapshot.added_rows or 0
    return orjson.Fragment(orjson.dumps(plain))
