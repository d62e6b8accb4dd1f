"""The rows of one table in memory, with the methods of `Ledger` and a small commit of its own."""

import hashlib
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import cast

from lakebed.core.ledger import Ledger, VersionView
from lakebed.core.outbox import Published
from lakebed.formats.iceberg.publish import IcebergPublisher
from lakebed.model.files import DataFile, LiveFile
from lakebed.model.history import (
    VECTORS,
    CommitRecord,
    ManifestRecord,
    PublicationRecord,
    Ref,
    Snapshot,
    TableHead,
    TableState,
)
from lakebed.model.ids import (
    MAIN_LINE,
    FileId,
    Line,
    SnapshotId,
    StateId,
    TableId,
    VectorId,
    Version,
)
from lakebed.model.names import TableName
from lakebed.model.partitioning import UNPARTITIONED, UNSORTED, PartitionSpec, SortOrder
from lakebed.model.schema import Schema
from lakebed.model.settings import Value
from lakebed.model.vectors import DeletionVector, Positions, place_vectors
from lakebed.storage.base import Storage

FIRST_MS = 1_700_000_000_000
STEP_MS = 1_000


class FakeLedger:
    def __init__(
        self,
        schema: Schema,
        spec: PartitionSpec = UNPARTITIONED,
        *,
        location: str = "ns/t",
        version: int | None = None,
        properties: Mapping[str, str] | None = None,
        sort_order: SortOrder = UNSORTED,
        comment: str | None = None,
    ) -> None:
        self.table_id = TableId(1)
        self.uuid = str(uuid.uuid5(uuid.NAMESPACE_URL, location))
        self.location = location
        state = TableState(
            id=StateId(0),
            schema=schema,
            spec=spec,
            sort_order=sort_order,
            properties=properties or {},
            formats=("iceberg",),
            last_column_id=schema.last_column_id,
            last_partition_id=999 + len(spec.fields),
            iceberg_version=version or (3 if schema.needs_iceberg_v3 else 2),
            delta_mapping=False,
            delta_partitioned=False,
            comment=comment,
        )
        self.states: list[TableState] = [state]  # by version
        self.all_schemas: list[Schema] = [schema]
        self.all_specs: list[PartitionSpec] = [spec]
        self.commit_rows: list[CommitRecord] = []
        self.files: dict[int, DataFile] = {}
        self.live_rows: list[LiveFile] = []  # one per interval
        self.snapshots: list[Snapshot] = []
        self.manifests: dict[int, ManifestRecord] = {}
        self.retired: set[int] = set()
        self.published: list[PublicationRecord] = []
        self.next_row_id = 0
        self.vectors: list[tuple[DeletionVector, str]] = []
        self.all_bitmaps: dict[VectorId, bytes] = {}
        self.runs_read = 0

    # --- what a commit does -----------------------------------------------------------------------

    def commit(
        self,
        added: Sequence[DataFile] = (),
        *,
        remove: Iterable[int] = (),
        restore: Iterable[int] = (),
        state: TableState | None = None,
        snapshot: bool = False,
        delete: Mapping[int, Iterable[int]] | None = None,
    ) -> Version:
        """`remove` and `restore` name file ids; `delete` gives positions by file id."""
        version = Version(len(self.commit_rows))
        time_ms = FIRST_MS + version * STEP_MS
        if version:
            self.states.append(state or self.states[-1])
        now = self.states[-1]
        if now.schema not in self.all_schemas:
            self.all_schemas.append(now.schema)
        if now.spec not in self.all_specs:
            self.all_specs.append(now.spec)
        gone, back, deleted = set(remove), set(restore), delete or {}
        operation = "overwrite" if gone and added else "delete" if gone else "append"
        self.commit_rows.append(
            CommitRecord(
                self.table_id,
                version,
                time_ms,
                operation,
                now.id,
                "owner",
                None,
                f"tx-{version}",
                True,
            )
        )
        if added or gone or back or deleted or snapshot:
            self._add_snapshot(version, time_ms, operation, added)
        current = self.snapshots[-1].id if self.snapshots else None
        self.commit_rows[-1] = replace(self.commit_rows[-1], snapshot_id=current)
        before = {f.id: f for f in self.live_rows if f.removed_version is None}
        for at, row in enumerate(self.live_rows):
            if (row.id in gone or row.id in deleted) and row.removed_version is None:
                self.live_rows[at] = replace(row, removed_version=version)
        for file_id in sorted(back):
            old = next(r for r in reversed(self.live_rows) if r.id == file_id)
            self.live_rows.append(replace(old, added_version=version, removed_version=None))
        if deleted:
            self._delete_rows([before[FileId(i)] for i in sorted(deleted)], deleted, version)
        for file in added:
            self._add_file(file, version)
        return version

    def _add_snapshot(
        self, version: Version, time_ms: int, operation: str, added: Sequence[DataFile]
    ) -> None:
        lineage = self.states[-1].iceberg_version >= 3
        digest = hashlib.sha256(f"{self.uuid}/{version}".encode()).digest()
        self.snapshots.append(
            Snapshot(
                id=SnapshotId(int.from_bytes(digest[:8], "big") >> 1),
                version=version,
                ordinal=0,
                sequence_number=len(self.snapshots) + 1,
                parent_id=self.snapshots[-1].id if self.snapshots else None,
                time_ms=time_ms,
                operation=operation,
                summary={"added-data-files": str(len(added))},
                schema_id=self.states[-1].schema.id,
                first_row_id=self.next_row_id if lineage else None,
                added_rows=sum(f.record_count for f in added) if lineage else None,
            )
        )

    def _add_file(self, file: DataFile, version: Version) -> None:
        newest, row_id = self.snapshots[-1], None
        if newest.first_row_id is not None:
            row_id, self.next_row_id = self.next_row_id, self.next_row_id + file.record_count
        file_id = FileId(len(self.files) + 1)
        self.files[file_id] = file
        self.live_rows.append(
            LiveFile(file_id, file, version, None, newest.sequence_number, newest.id, row_id)
        )

    def _delete_rows(
        self, files: list[LiveFile], deleted: Mapping[int, Iterable[int]], version: Version
    ) -> None:
        made = []
        for f in files:
            old = Positions.from_bytes(self.all_bitmaps[f.vector.id]) if f.vector else Positions()
            made.append(old | Positions(deleted[f.id]))
        newest = self.snapshots[-1]
        placed = place_vectors(
            [(p.to_bytes(), len(p)) for p in made],
            VectorId(len(self.all_bitmaps) + 1),
            sequence_number=newest.sequence_number,
            snapshot_id=newest.id,
        )
        for f, positions, vector in zip(files, made, placed, strict=True):
            self.all_bitmaps[vector.id] = positions.to_bytes()
            self.vectors.append((vector, f.file.path))
            self.live_rows.append(replace(f, added_version=version, vector=vector))

    def number_rows(self) -> None:
        """What the upgrade to v3 does to the files there are."""
        for at, row in enumerate(self.live_rows):
            if row.first_row_id is None:
                first = self.next_row_id
                self.live_rows = [
                    replace(r, first_row_id=first) if r.id == row.id else r for r in self.live_rows
                ]
                self.next_row_id += self.live_rows[at].file.record_count

    def record(self, version: Version, done: Published) -> None:
        """What `formats.publish` does in SQL."""
        self.published += done.publications
        for manifest in done.manifests_added:
            assert manifest.id not in self.manifests
            self.manifests[manifest.id] = manifest
        self.retired |= set(done.manifests_retired)
        self.snapshots = [
            replace(s, manifest_list=done.manifest_lists.get(s.id, s.manifest_list))
            for s in self.snapshots
        ]

    # --- what a publisher asks --------------------------------------------------------------------

    def head(self) -> TableHead:
        newest = self.commit_rows[-1]
        live = self.files_at(newest.version)
        return TableHead(
            self.table_id,
            self.uuid,
            TableName(("ns",), "t"),
            self.location,
            "managed",
            FIRST_MS,
            newest.version,
            newest.time_ms,
            newest.state_id,
            self.snapshots[-1].id if self.snapshots else None,
            len(self.snapshots),
            len(self.files) + 1,
            self.next_row_id,
            len(live),
            sum(f.file.record_count for f in live),
            sum(f.file.size_bytes for f in live),
            next_vector_id=len(self.all_bitmaps) + 1,
        )

    def commit_times(self, first: int, last: int) -> dict[int, int]:
        return {v: self.commit_rows[Version(v)].time_ms for v in range(first, last + 1)}

    def view(self, version: Version) -> VersionView:
        return VersionView(
            self.head(),
            self.commit_rows[version],
            self.states[version],
            self.states[version - 1] if version else None,
            tuple(f for f in self.live_rows if f.added_version == version),
            tuple(f for f in self.live_rows if f.removed_version == version),
            tuple(s for s in self.snapshots if s.version == version),
        )

    def schemas(self) -> list[Schema]:
        return self.all_schemas

    def specs(self) -> list[PartitionSpec]:
        return self.all_specs

    def files_at(self, version: Version) -> list[LiveFile]:
        found = [
            f
            for f in self.live_rows
            if f.added_version <= version
            and (f.removed_version is None or f.removed_version > version)
        ]
        return sorted(found, key=lambda f: f.id)

    def row_numbers(self, first: int, last: int) -> list[tuple[int | None, int]]:
        known = {r.id: (r.first_row_id, r.file.record_count) for r in self.live_rows}
        return [known[i] for i in sorted(known) if first <= i <= last]

    def files_in_run(
        self, version: Version, *, first: int, last: int, line: Line = MAIN_LINE
    ) -> list[LiveFile]:
        found = [f for f in self.files_at(version) if first <= f.id <= last]
        self.runs_read += len(found)
        return found

    def vectors_in_run(
        self, version: Version, *, first: int, last: int, line: Line = MAIN_LINE
    ) -> list[LiveFile]:
        live = [f for f in self.files_at(version) if f.vector and first <= f.vector.id <= last]
        self.runs_read += len(live)
        return sorted(live, key=lambda f: f.vector.id if f.vector else 0)

    def vectors_of(self, snapshot_id: SnapshotId) -> list[tuple[DeletionVector, str]]:
        return [(v, path) for v, path in self.vectors if v.snapshot_id == snapshot_id]

    def bitmaps(self, ids: Sequence[VectorId]) -> dict[VectorId, bytes]:
        return {vector_id: self.all_bitmaps[vector_id] for vector_id in ids}

    def vector_files(self, format_: str, numbers: Sequence[int]) -> dict[int, PublicationRecord]:
        found = self.publications(format_, VECTORS, 10**9)
        return {p.number: p for p in found if p.number in set(numbers)}

    def published_snapshots(self, limit: int) -> list[Snapshot]:
        found = [s for s in self.snapshots if s.manifest_list]
        return sorted(found, key=lambda s: -s.sequence_number)[:limit]

    def snapshot(self, snapshot_id: SnapshotId) -> Snapshot | None:
        return next((s for s in self.snapshots if s.id == snapshot_id), None)

    def refs(self) -> list[Ref]:
        return []

    def live_manifests(self, line: Line = MAIN_LINE) -> list[ManifestRecord]:
        found = [m for m in self.manifests.values() if m.id not in self.retired]
        return sorted(found, key=lambda m: (m.content, m.first_id))

    def publications(self, format_: str, kind: str, limit: int) -> list[PublicationRecord]:
        found = [p for p in self.published if (p.format, p.kind) == (format_, kind)]
        return sorted(found, key=lambda p: -p.number)[:limit]


def as_ledger(fake: FakeLedger) -> Ledger:
    return cast(Ledger, fake)


def default_settings(name: str, properties: Mapping[str, str]) -> Value:
    assert name == "publish.iceberg.keep"
    return int(properties.get(name, 200))


def publish(
    storage: Storage, ledger: FakeLedger, version: Version, kind: str = "commit"
) -> Published:
    """Publish one version and record what was written."""
    publisher = IcebergPublisher(storage, default_settings)
    done = publisher.publish(as_ledger(ledger), ledger.view(version), kind)
    ledger.record(version, done)
    return done
