"""Snapshots as metadata files list them: rendered once, though hundreds of files list each."""

from collections.abc import Iterable
from typing import NamedTuple

import orjson

from lakebed.formats.iceberg.types import Json
from lakebed.model.history import Snapshot
from lakebed.model.ids import SnapshotId

_KEPT_MOST = 8192


class _Rendered(NamedTuple):
    snapshot: Snapshot  # held, so that no other object can have its address
    location: str
    has_parent: bool
    text: orjson.Fragment


_kept: dict[int, _Rendered] = {}


def snapshot_texts(
    snapshots: Iterable[Snapshot], location: str, published: frozenset[SnapshotId]
) -> list[orjson.Fragment]:
    """Those of a table at a location; `published` are the snapshots that may be named.

    A parent that is no longer listed keeps its name, as after an expiry; one that was made while
    Iceberg was off was never there.
    """
    texts = []
    for snapshot in snapshots:
        has_parent = snapshot.parent_id in published
        kept = _kept.get(id(snapshot))
        if kept is None or kept[:3] != (snapshot, location, has_parent):
            text = orjson.Fragment(orjson.dumps(_plain(snapshot, location, has_parent=has_parent)))
            kept = _Rendered(snapshot, location, has_parent, text)
            if len(_kept) >= _KEPT_MOST:
                _kept.clear()
            _kept[id(snapshot)] = kept
        texts.append(kept.text)
    return texts


def _plain(snapshot: Snapshot, location: str, *, has_parent: bool) -> Json:
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
    return plain
