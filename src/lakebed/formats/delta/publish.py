"""The Delta publisher: commits, checkpoints, and the start of a log at a later version."""

from collections.abc import Callable, Iterable, Mapping

import orjson

from lakebed.core.crash import crash_point
from lakebed.core.ledger import Ledger, VersionView
from lakebed.core.outbox import Published
from lakebed.formats.base import put_once, record
from lakebed.formats.delta.actions import Action, CdcAction, CommitInfo, encode_lines, from_plain
from lakebed.formats.delta.changes import (
    ChangeWriter,
    is_told_by_files,
    records_of,
    write_changes,
)
from lakebed.formats.delta.checkpoint import Written, existing_checkpoint, write_checkpoint
from lakebed.formats.delta.features import Start
from lakebed.formats.delta.log import LAST_CHECKPOINT, checkpoint_path, commit_path, log_versions
from lakebed.formats.delta.read import read_actions
from lakebed.formats.delta.translate import commit_actions, commit_info, state_actions, state_shows
from lakebed.formats.delta.vectors import describe, file_bytes, file_path
from lakebed.formats.delta.whole_state import (
    checkpoint_pieces,
    find_start,
    live_vectors,
    shown_anew,
    start_lines,
)
from lakebed.formats.vector_files import VectorFiles
from lakebed.model.errors import ForeignCommit, StorageError
from lakebed.model.history import DELTA, PublicationRecord
from lakebed.model.settings import Value
from lakebed.model.vectors import DeletionVector
from lakebed.storage.base import Storage

_INTERVAL = "publish.delta.checkpoint-interval"
# A checkpoint costs as much as there are files: the more there are, the rarer it comes.
_FILES_PER_COMMIT = 100
_BYTES_PER_COMMIT = 10_000


class DeltaPublisher:
    """`settings` gives a setting's value for a table with these properties."""

    format = DELTA

    def __init__(
        self,
        storage: Storage,
        settings: Callable[[str, Mapping[str, str]], Value],
        changes: ChangeWriter,
    ) -> None:
        self._storage = storage
        self._settings = settings
        self._changes = changes

    def publish(self, ledger: Ledger, view: VersionView, kind: str) -> Published:
        match kind:
            case "commit":
                return self._commit(ledger, view)
            case "start":
                return self._start(ledger, view)
            case "checkpoint":
                start = find_start(ledger, view.commit.version)
                return Published((self._checkpoint(ledger, view, start),))
            case _:
                raise AssertionError(f"Delta publishes nothing of kind {kind!r}")

    def _commit(self, ledger: Ledger, view: VersionView) -> Published:
        lines: list[Action] = [commit_info(view)]
        anew: list[Action] = []
        if state_shows(view):
            start = find_start(ledger, view.commit.version)
            lines += state_actions(view, start)
            if _loses_partitions(view):
                anew = shown_anew(self._storage, ledger, view, start)
        vectors = describe(ledger, view.head.uuid, (*view.added, *view.removed))
        lines += commit_actions(view, vectors, anew)
        told = self._tell(ledger, view) if anew or not is_told_by_files(view) else []
        lines += told
        named = [f.vector for f in view.added if f.vector is not None]
        files = self._put_vectors(ledger, view, named, anew=False)
        written = self._put(view, "commit", encode_lines(lines))
        due = self._checkpoint_is_due(ledger, view)
        changes = records_of(self._storage, view, told)
        return Published((*files, *changes, written), follow_up=("checkpoint",) if due else ())

    def _start(self, ledger: Ledger, view: VersionView) -> Published:
        files = self._put_vectors(ledger, view, live_vectors(ledger, view), anew=True)
        lines = [encode_lines([commit_info(view)])]
        lines += [encode_lines(piece) for piece in start_lines(ledger, view)]
        told = self._tell(ledger, view)  # not all of these files are new
        lines.append(encode_lines([*told]))
        written = self._put(view, "start", b"".join(lines))
        start = Start(view.commit.version, view.commit.time_ms)
        changes = records_of(self._storage, view, told)
        return Published((*files, *changes, written, self._checkpoint(ledger, view, start)))

    def _tell(self, ledger: Ledger, view: VersionView) -> list[CdcAction]:
        """What the version did to rows, in files of their own, when the table wants that."""
        if not view.state.delta_change_feed:
            return []
        path = commit_path(view.commit.version)
        whole = f"{view.head.location}/{path}"
        if self._storage.stat(whole) is None:
            told = write_changes(self._storage, self._changes, ledger, view)
            crash_point("publish_delta_after_changes")
            return told
        if not _is_ours(view, self._storage.get(whole)):
            raise _foreign(self._storage, view, path)
        # An earlier try came as far as this: its log names its files.
        return [a for a in read_actions(self._storage, whole) if isinstance(a, CdcAction)]

    def _put_vectors(
        self, ledger: Ledger, view: VersionView, named: Iterable[DeletionVector], *, anew: bool
    ) -> list[PublicationRecord]:
        """The files of the large vectors that the log is about to name."""
        uuid = view.head.uuid
        files = VectorFiles(
            self._storage, DELTA, lambda made: (file_path(uuid, made), file_bytes(ledger, made))
        )
        large = [v for v in named if v.delta_offset is not None]
        written = files.write(ledger, view, large, anew=anew)
        crash_point("publish_delta_after_vectors")
        return written

    def _put(self, view: VersionView, kind: str, data: bytes) -> PublicationRecord:
        path = commit_path(view.commit.version)
        time_ms = view.commit.time_ms
        found = put_once(self._storage, view.head.location, path, data, time_ms=time_ms)
        if found is not None:
            if not _is_ours(view, found):
                raise _foreign(self._storage, view, path)
            data = found
        crash_point("publish_delta_after_put")
        number = view.commit.version
        return record(kind, format_=DELTA, number=number, view=view, path=path, data=data)

    def _checkpoint_is_due(self, ledger: Ledger, view: VersionView) -> bool:
        version = view.commit.version
        interval = int(self._settings(_INTERVAL, view.state.properties))
        if version < interval:
            return False
        last = ledger.publications(DELTA, "checkpoint", 1)
        # Live files alone would not do: removed ones stay in checkpoints for a week.
        bulk = max((p.size_bytes / _BYTES_PER_COMMIT for p in last), default=0.0)
        often = max(interval, view.head.live_files / _FILES_PER_COMMIT, bulk)
        if version - max((p.version for p in last), default=0) < often:
            return False
        waiting = (r for r in ledger.pending() if (r.format, r.kind) == (DELTA, "checkpoint"))
        return version - max((r.version for r in waiting), default=0) >= often

    def _checkpoint(
        self, ledger: Ledger, view: VersionView, start: Start | None
    ) -> PublicationRecord:
        version = view.commit.version
        path = checkpoint_path(version)
        written = self._write_once(f"{view.head.location}/{path}", ledger, view, start)
        crash_point("publish_delta_after_checkpoint")
        self._point_to(view, written)
        size, digest = written.size_bytes, written.digest
        return PublicationRecord(DELTA, "checkpoint", version, version, path, size, digest)

    def _write_once(
        self, path: str, ledger: Ledger, view: VersionView, start: Start | None
    ) -> Written:
        if self._storage.stat(path) is None:
            pieces = checkpoint_pieces(self._storage, ledger, view, start)
            try:
                return write_checkpoint(self._storage, path, pieces)
            except StorageError:
                if self._storage.stat(path) is None:
                    raise
        # Another process was faster, or a stock tool made one: any checkpoint of a version is good.
        return existing_checkpoint(self._storage, path)

    def _point_to(self, view: VersionView, written: Written) -> None:
        path = f"{view.head.location}/{LAST_CHECKPOINT}"
        version = view.commit.version
        if self._pointed_to(path) > version:
            return
        hint = {
            "version": version,
            "size": written.actions,
            "sizeInBytes": written.size_bytes,
            "numOfAddFiles": written.adds,
        }
        self._storage.replace(path, orjson.dumps(hint))

    def _pointed_to(self, path: str) -> int:
        if self._storage.stat(path) is None:
            return -1
        try:
            return int(orjson.loads(self._storage.get(path))["version"])
        except (ValueError, KeyError, TypeError):  # it is only a hint: write a good one
            return -1


def _loses_partitions(view: VersionView) -> bool:
    before = view.previous
    return before is not None and before.delta_partitioned and not view.state.delta_partitioned


def _is_ours(view: VersionView, found: bytes) -> bool:
    """The same commit may have been rendered by another release; anything else is foreign."""
    return _transaction_of(found) == view.commit.transaction_id


def _transaction_of(data: bytes) -> str | None:
    try:
        first = orjson.loads(data.partition(b"\n")[0])
        info = from_plain("commitInfo", first.get("commitInfo"))
    except (ValueError, AttributeError):
        return None
    return info.transaction_id if isinstance(info, CommitInfo) else None


def _foreign(storage: Storage, view: VersionView, path: str) -> ForeignCommit:
    whole, version = f"{view.head.location}/{path}", view.commit.version
    theirs = [v for v in log_versions(storage, view.head.location) if v >= version]
    others = f" and {len(theirs) - 1} later versions in the log were"
    these = f"{whole!r}{others if len(theirs) > 1 else ' was'}"
    return ForeignCommit(
        f"{these} not written by this lake: version {version} of {view.head.name}"
        " cannot be published to Delta",
        hint="look at what stands there; save copies elsewhere and remove them from the log, then"
        " run `lakebed publish`. Or publish the table as Iceberg alone (formats=['iceberg']).",
        path=whole,
        version=version,
        foreign_versions=theirs,
    )
