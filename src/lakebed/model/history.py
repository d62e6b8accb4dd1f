"""What a table's history is made of: states, commits and snapshots."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from lakebed.model.constraints import Constraint
from lakebed.model.ids import MAIN_LINE, Line, SnapshotId, StateId, TableId, Version
from lakebed.model.names import TableName
from lakebed.model.partitioning import PartitionSpec, SortOrder
from lakebed.model.schema import Schema

DELTA = "delta"
ICEBERG = "iceberg"
FORMATS = (DELTA, ICEBERG)
BRANCH = "branch"
TAG = "tag"
MAIN = "main"
CHANGE_FEED = "delta.enableChangeDataFeed"  # Delta's own name for its property


@dataclass(frozen=True, slots=True)
class TableState:
    """A table's metadata at some versions: immutable; a commit that changes it makes a new one."""

    id: StateId
    schema: Schema
    spec: PartitionSpec
    sort_order: SortOrder
    properties: Mapping[str, str]
    formats: tuple[str, ...]
    last_column_id: int
    last_partition_id: int
    iceberg_version: int  # 2, or 3 once something needs it
    delta_mapping: bool  # column mapping, once on, stays on
    delta_partitioned: bool  # shown partitioned in Delta; once off, stays off
    comment: str | None = None
    delta_vectors: bool = False  # deletion vectors were used; once on, stays on
    constraints: Mapping[str, Constraint] = field(default_factory=dict)

    @property
    def delta_change_feed(self) -> bool:
        """Does Delta tell what happened to rows, in files of its own?"""
        return self.properties.get(CHANGE_FEED) == "true"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """An Iceberg snapshot; a commit makes none, one or several."""

    id: SnapshotId
    version: Version
    ordinal: int
    sequence_number: int
    parent_id: SnapshotId | None
    time_ms: int
    operation: str  # Iceberg's word: append, overwrite, delete, replace
    summary: Mapping[str, str]
    schema_id: int
    first_row_id: int | None = None
    added_rows: int | None = None
    manifest_list: str | None = None  # set when published
    line: Line = MAIN_LINE


@dataclass(frozen=True, slots=True)
class CommitRecord:
    """One version of a table as the rows keep it."""

    table_id: TableId
    version: Version
    time_ms: int
    operation: str  # create, append, overwrite, delete, update, merge, alter, restore, …
    state_id: StateId
    author: str
    message: str | None
    transaction_id: str
    blind_append: bool
    summary: Mapping[str, Any] = field(default_factory=dict)
    app_transaction: tuple[str, int] | None = None
    line: Line = MAIN_LINE
    snapshot_id: SnapshotId | None = None  # current after it


@dataclass(frozen=True, slots=True)
class Commit:
    """What a write returns, and what a history lists."""

    table: str
    version: int
    time_ms: int
    operation: str
    author: str
    message: str | None
    transaction_id: str
    summary: Mapping[str, Any]
    published: bool = True
    reason: str | None = None  # why it is not published
    replayed: bool = False  # answered before: same idempotency key or application transaction
    changed: bool = True  # False: no row was touched, so there is no new version; this is the head
    branch: str | None = MAIN  # that it was made on; None: one that was dropped

    @property
    def time(self) -> datetime:
        return datetime.fromtimestamp(self.time_ms / 1000, UTC)

    @property
    def duration_ms(self) -> int | None:
        """From the beginning of the call to the commit, files written and all; None: not known."""
        return self.summary.get("duration_ms")


@dataclass(frozen=True, slots=True)
class TableHead:
    """A table's row: where it is, what it is now, and its counters."""

    id: TableId
    uuid: str
    name: TableName
    location: str  # its root, relative to the warehouse
    write_mode: str
    created_ms: int
    version: Version
    time_ms: int
    state_id: StateId
    snapshot_id: SnapshotId | None
    last_sequence_number: int
    next_file_id: int
    next_row_id: int
    live_files: int
    live_rows: int
    live_bytes: int
    live_vectors: int = 0
    live_deletes: int = 0  # rows in those vectors
    next_vector_id: int = 0
    held_by: str | None = None  # who alone may change rows, until `held_until_ms`
    held_strict: int = 0  # 1: not even appends pass
    held_until_ms: int = 0
    line: Line = MAIN_LINE  # of a branch: version, time, snapshot and what is live are its own


@dataclass(frozen=True, slots=True)
class LineRecord:
    """A branch's history; what came before its fork is its parent's.

    `merged_version` is what main has taken of it, by its own version `main_version`.
    """

    line: Line
    parent_line: Line
    fork_version: Version
    merged_version: Version
    main_version: Version
    version: Version
    time_ms: int
    snapshot_id: SnapshotId | None
    live_files: int
    live_rows: int
    live_bytes: int
    live_vectors: int
    live_deletes: int


@dataclass(frozen=True, slots=True)
class Ref:
    """A name for a line (branch) or for one version of a line (tag).

    Ages are kept for those who expire snapshots; None leaves it to the table's settings.
    """

    name: str
    kind: str
    line: Line
    version: Version
    snapshot_id: SnapshotId | None
    created_ms: int
    max_age_ms: int | None = None
    min_snapshots: int | None = None
    max_snapshot_age_ms: int | None = None

    @property
    def created(self) -> datetime:
        return datetime.fromtimestamp(self.created_ms / 1000, UTC)


@dataclass(frozen=True, slots=True)
class OutboxRow:
    """Something to be published still. `kind`: commit, start, checkpoint, refs or purge."""

    id: int
    table_id: TableId
    format: str
    kind: str
    version: Version
    created_ms: int
    attempts: int
    next_ms: int
    error_code: str | None
    error: str | None
    line: Line = MAIN_LINE


VECTORS = "vectors"
CHANGES = "changes"


@dataclass(frozen=True, slots=True)
class Backlog:
    """Commits that readers of some format do not see yet, and the age of the oldest."""

    versions: int
    seconds: float


@dataclass(frozen=True, slots=True)
class PublicationRecord:
    """A file that was published: for Delta `number` is the version, for Iceberg a counter.

    For a file of deletion vectors it is the sequence number of the snapshot that made them; for
    those of Delta's change feed, of which a version may have many, it counts all of them.
    """

    format: str
    kind: str  # commit, start, checkpoint, metadata, vectors or changes
    number: int
    version: Version
    path: str  # relative to the table's root
    size_bytes: int
    digest: str
    line: Line = MAIN_LINE  # the one whose version it is


DATA, DELETES = 0, 1  # Iceberg's numbers for the two contents of manifests


@dataclass(frozen=True, slots=True)
class ManifestRecord:
    """A published manifest: one run of ids of one spec, of files or of deletion vectors."""

    id: int
    path: str
    size_bytes: int
    digest: str
    spec_id: int
    sequence_number: int
    min_sequence_number: int
    snapshot_id: SnapshotId
    counts: tuple[int, int, int, int, int, int]  # files added, existing, deleted; rows likewise
    partitions: tuple[tuple[bool, bool | None, str | None, str | None], ...]  # bounds in hex
    first_row_id: int | None
    first_id: int
    last_id: int
    content: int = DATA  # of the manifest
