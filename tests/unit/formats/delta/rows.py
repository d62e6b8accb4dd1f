"""A table's rows by hand: a ledger in memory with the times and states a test wants."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lakebed.core.ledger import Ledger, VersionView
from lakebed.core.outbox import Published
from lakebed.formats.base import Publisher
from lakebed.formats.delta.publish import DeltaPublisher
from lakebed.model.files import ColumnStats, DataFile, LiveFile
from lakebed.model.history import (
    VECTORS,
    CommitRecord,
    OutboxRow,
    PublicationRecord,
    TableHead,
    TableState,
)
from lakebed.model.ids import (
    MAIN_LINE,
    FieldId,
    FileId,
    Line,
    SnapshotId,
    SpecId,
    StateId,
    TableId,
    VectorId,
    Version,
)
from lakebed.model.names import TableName
from lakebed.model.partitioning import UNSORTED, PartitionSpec, parse_spec
from lakebed.model.schema import Schema, new_schema
from lakebed.model.schema_text import parse_schema
from lakebed.model.settings import BY_NAME, Value
from lakebed.model.vectors import DeletionVector, Positions, place_vectors
from lakebed.storage.base import Storage

T0 = 1_700_000_000_000
ROOT = "ns/t"
TABLE = TableId(1)


def default_settings(name: str, properties: Mapping[str, str]) -> Value:
    value = properties.get(name, BY_NAME[name].default)
    return int(value)


class NoRows:
    """Tables by hand have no rows to tell of."""

    def write(self, ledger: Ledger, view: VersionView, folder: str) -> list[DataFile]:
        raise AssertionError("nobody asked for changes")


def delta(storage: Storage) -> DeltaPublisher:
    return DeltaPublisher(storage, default_settings, NoRows())


def schema_of(text: str) -> Schema:
    return new_schema(parse_schema(text))


def first_state(
    schema: Schema,
    partition_by: tuple[str, ...] = (),
    properties: Mapping[str, str] | None = None,
    **more: Any,
) -> TableState:
    spec = parse_spec(partition_by, schema) if partition_by else PartitionSpec(SpecId(0))
    return TableState(
        id=StateId(0),
        schema=schema,
        spec=spec,
        sort_order=UNSORTED,
        properties=dict(properties or {}),
        formats=more.pop("formats", ("delta",)),
        last_column_id=schema.last_column_id,
        last_partition_id=999 + len(spec.fields),
        iceberg_version=2,
        delta_mapping=more.pop("delta_mapping", schema.needs_column_mapping),
        delta_partitioned=more.pop("delta_partitioned", bool(spec.fields) and spec.is_identity),
        **more,
    )


def data_file(name: str, rows: int = 1, partition: tuple[Any, ...] = (), **more: Any) -> DataFile:
    """A record without a real file."""
    stats = {FieldId(1): ColumnStats(rows, 0, None, None, 0, rows - 1)}
    return DataFile(
        f"data/{name}", 100 + rows, rows, SpecId(0), partition, more.get("stats", stats)
    )


class FakeLedger(Ledger):
    """What the rows would say; versions, file ids and times count up by themselves."""

    def __init__(self, state: TableState, *, time_ms: int = T0) -> None:
        self.table_id = TABLE
        self._states = [state]
        self._views: list[VersionView] = []
        self._files: list[LiveFile] = []
        self._publications: list[PublicationRecord] = []
        self._outbox: list[OutboxRow] = []
        self._vectors: list[tuple[DeletionVector, str]] = []
        self._bitmaps: dict[VectorId, bytes] = {}
        self._time_ms = time_ms
        self._head = TableHead(
            id=TABLE,
            uuid=str(uuid.UUID(int=7)),
            name=TableName(("ns",), "t"),
            location=ROOT,
            write_mode="managed",
            created_ms=time_ms,
            version=Version(-1),
            time_ms=time_ms,
            state_id=state.id,
            snapshot_id=None,
            last_sequence_number=0,
            next_file_id=1,
            next_row_id=0,
            live_files=0,
            live_rows=0,
            live_bytes=0,
        )

    # Writing.

    def commit(
        self,
        operation: str,
        *,
        add: Sequence[DataFile] = (),
        remove: Sequence[str] = (),
        delete: Mapping[str, Iterable[int]] | None = None,
        back: Sequence[LiveFile] = (),
        step_ms: int = 1000,
        message: str | None = None,
        app: tuple[str, int] | None = None,
        summary: Mapping[str, Any] | None = None,
        **changes: Any,
    ) -> VersionView:
        """The next version; `changes` replace members of the state, `remove` names paths.

        `delete` names positions by path; `back` are files that come back with their vectors.
        """
        version = Version(self._head.version + 1)
        previous = self._states[-1] if version else None
        if delete and not self._states[-1].delta_vectors:
            changes["delta_vectors"] = True
        if changes:
            changed = replace(self._states[-1], id=StateId(self._states[-1].id + 1), **changes)
            self._states.append(changed)
        removed = self._close([*remove, *(delete or {})], version)
        added = self._open(add, version) + self._with_vectors(delete or {}, removed, version)
        added += self._again(back, version)
        self._advance(version, step_ms if version else 0)
        record = CommitRecord(
            TABLE,
            version,
            self._time_ms,
            operation,
            self._states[-1].id,
            "ada",
            message,
            f"transaction-{version}",
            not remove,
            summary or {},
            app,
        )
        view = VersionView(self._head, record, self._states[-1], previous, added, removed, ())
        self._views.append(view)
        self._queue(version, previous)
        return view

    def _close(self, paths: Sequence[str], version: Version) -> tuple[LiveFile, ...]:
        named = set(paths)
        gone = [f for f in self._files if f.removed_version is None and f.file.path in named]
        assert len(gone) == len(named)
        closed = {id(f): replace(f, removed_version=version) for f in gone}
        self._files = [closed.get(id(f), f) for f in self._files]
        return tuple(closed.values())

    def _open(self, files: Sequence[DataFile], version: Version) -> tuple[LiveFile, ...]:
        known = {f.file.path: f.id for f in self._files}
        added = []
        for file in files:
            file_id = known.get(file.path)
            if file_id is None:
                file_id = FileId(self._head.next_file_id)
                self._head = replace(self._head, next_file_id=file_id + 1)
            added.append(LiveFile(file_id, file, version, None, 1, SnapshotId(1), None))
        self._files += added
        return tuple(added)

    def _with_vectors(
        self, delete: Mapping[str, Iterable[int]], before: Sequence[LiveFile], version: Version
    ) -> tuple[LiveFile, ...]:
        files = [f for f in before if f.file.path in delete]
        made = []
        for f in files:
            old = Positions.from_bytes(self._bitmaps[f.vector.id]) if f.vector else Positions()
            made.append(old | Positions(delete[f.file.path]))
        placed = place_vectors(
            [(p.to_bytes(), len(p)) for p in made],
            VectorId(len(self._bitmaps)),
            sequence_number=version + 1,
            snapshot_id=SnapshotId(1000 + version),
        )
        for vector, positions, f in zip(placed, made, files, strict=True):
            self._bitmaps[vector.id] = positions.to_bytes()
            self._vectors.append((vector, f.file.path))
        revectored = zip(files, placed, strict=True)
        return self._again([replace(f, vector=vector) for f, vector in revectored], version)

    def _again(self, files: Sequence[LiveFile], version: Version) -> tuple[LiveFile, ...]:
        again = tuple(replace(f, added_version=version, removed_version=None) for f in files)
        self._files += again
        return again

    def _advance(self, version: Version, step_ms: int) -> None:
        self._time_ms += step_ms
        live = [f for f in self._files if f.removed_version is None]
        self._head = replace(
            self._head,
            version=version,
            time_ms=self._time_ms,
            state_id=self._states[-1].id,
            live_files=len(live),
        )

    def _queue(self, version: Version, previous: TableState | None) -> None:
        formats = self._states[-1].formats
        known = formats if previous is None else previous.formats
        for name in formats:
            self.enqueue(name, "commit" if name in known else "start", version)

    def enqueue(self, name: str, kind: str, version: Version) -> None:
        row = OutboxRow(len(self._outbox), TABLE, name, kind, version, 0, 0, 0, None, None)
        self._outbox.append(row)

    def drain(self, publisher: Publisher, *, checkpoints: bool = True) -> list[Published]:
        """Publish what is due as the drainer does, follow-ups last."""
        done = [
            self.publish(publisher, row)
            for row in list(self._outbox)
            if row.format == publisher.format and (checkpoints or row.kind != "checkpoint")
        ]
        if checkpoints and any(p.follow_up for p in done):
            done += self.drain(publisher)
        return done

    def publish(self, publisher: Publisher, row: OutboxRow) -> Published:
        published = publisher.publish(self, self.view(row.version), row.kind)
        self._outbox.remove(row)
        self._publications += published.publications
        for kind in published.follow_up:
            self.enqueue(row.format, kind, row.version)
        return published

    def rename(self, name: str) -> None:
        self._head = replace(self._head, name=TableName(("ns",), name))

    # Reading, as publishers do.

    def head(self) -> TableHead:
        return self._head

    def view(self, version: Version, line: Line = MAIN_LINE) -> VersionView:
        return replace(self._views[version], head=self._head)

    def state(self, state_id: StateId) -> TableState:
        return self._states[state_id]

    def commits(self, limit: int, line: Line = MAIN_LINE) -> list[CommitRecord]:
        return [v.commit for v in reversed(self._views)][:limit]

    def files_at(self, version: Version, line: Line = MAIN_LINE) -> list[LiveFile]:
        return sorted((f for f in self._files if _visible(f, version)), key=lambda f: f.id)

    def files_in_run(
        self, version: Version, *, first: int, last: int, line: Line = MAIN_LINE
    ) -> list[LiveFile]:
        return [f for f in self.files_at(version) if first <= f.id <= last]

    def removed_between(self, *, after: Version, up_to: Version) -> list[LiveFile]:
        return [
            f
            for f in self._files
            if f.removed_version is not None and after < f.removed_version <= up_to
        ]

    def bitmaps(self, ids: Sequence[VectorId]) -> dict[VectorId, bytes]:
        return {vector_id: self._bitmaps[vector_id] for vector_id in ids}

    def vectors_of(self, snapshot_id: SnapshotId) -> list[tuple[DeletionVector, str]]:
        return [(v, path) for v, path in self._vectors if v.snapshot_id == snapshot_id]

    def vector_files(self, format_: str, numbers: Sequence[int]) -> dict[int, PublicationRecord]:
        found = self.publications(format_, VECTORS, 10**9)
        return {p.number: p for p in found if p.number in set(numbers)}

    def commit_before(self, time_ms: int) -> CommitRecord | None:
        return next((c for c in self.commits(10**9) if c.time_ms <= time_ms), None)

    def app_transactions(self, version: Version) -> list[tuple[str, int, int]]:
        found: dict[str, tuple[str, int, int]] = {}
        for view in self._views[: version + 1]:
            if view.commit.app_transaction is not None:
                app_id, number = view.commit.app_transaction
                found[app_id] = (app_id, number, view.commit.time_ms)
        return [found[app_id] for app_id in sorted(found)]

    def publications(self, format_: str, kind: str, limit: int) -> list[PublicationRecord]:
        ours = [p for p in self._publications if (p.format, p.kind) == (format_, kind)]
        return sorted(ours, key=lambda p: -p.number)[:limit]

    def all_publications(self) -> list[PublicationRecord]:
        return list(self._publications)

    def pending(self) -> list[OutboxRow]:
        return list(self._outbox)


def _visible(live: LiveFile, version: Version) -> bool:
    removed = live.removed_version
    return live.added_version <= version and (removed is None or removed > version)
