"""A table's whole state at a version, in pieces: for checkpoints and for logs that begin late."""

import re
from collections.abc import Iterator, Mapping

from lakebed.core.ledger import Ledger, VersionView
from lakebed.formats.delta.actions import Action, TxnAction, encode_path
from lakebed.formats.delta.checkpoint import known_times
from lakebed.formats.delta.features import Start
from lakebed.formats.delta.translate import add_of, layout_of, remove_of, state_actions
from lakebed.formats.delta.vectors import describe
from lakebed.model.files import LiveFile
from lakebed.model.history import DELTA, PublicationRecord
from lakebed.model.ids import VectorId, Version
from lakebed.model.vectors import DeletionVector
from lakebed.storage.base import Storage

_PIECE = 4096  # files; a piece grows to some times this where ids are sparse, so memory is bounded
_WIDEST = 16 * _PIECE
_WEEK_MS = 7 * 86_400_000
_RETENTION = "delta.deletedFileRetentionDuration"
_DURATION = re.compile(r"(?:interval\s+)?(\d+)\s+(week|day|hour|minute|second)s?", re.IGNORECASE)
_UNIT_MS = {
    "week": _WEEK_MS,
    "day": 86_400_000,
    "hour": 3_600_000,
    "minute": 60_000,
    "second": 1000,
}


def find_start(ledger: Ledger, version: Version) -> Start | None:
    """Where the log that holds this version begins, unless at version 0."""
    for record in ledger.publications(DELTA, "start", 1000):
        if record.version <= version:
            return Start(record.version, ledger.view(record.version).commit.time_ms)
    return None


def start_lines(ledger: Ledger, view: VersionView) -> Iterator[list[Action]]:
    """Every live file as if the commit had added it; older versions are not offered."""
    time_ms = view.commit.time_ms
    yield [*state_actions(view, Start(view.commit.version, time_ms)), *_txns(ledger, view)]
    layout = layout_of(view.state)
    for files in _live_pieces(ledger, view):
        vectors = describe(ledger, view.head.uuid, files)
        yield [add_of(layout, f, vectors, time_ms=time_ms) for f in files]


def live_vectors(ledger: Ledger, view: VersionView) -> Iterator[DeletionVector]:
    """Those of all live files."""
    if view.state.delta_vectors:
        for files in _live_pieces(ledger, view):
            yield from (f.vector for f in files if f.vector is not None)


def shown_anew(
    storage: Storage, ledger: Ledger, view: VersionView, start: Start | None
) -> list[Action]:
    """The files of earlier commits, added again because the table is no longer shown partitioned.

    Their first lines have partition values where statistics belong now.
    """
    layout = layout_of(view.state)
    times = _Times(storage, ledger, view, start)
    again: list[Action] = []
    for files in _live_pieces(ledger, view):
        older = [f for f in files if f.added_version < view.commit.version]
        vectors = describe(ledger, view.head.uuid, older)
        again += [
            add_of(layout, f, vectors, time_ms=times.added(f), data_change=False) for f in older
        ]
    return again


def checkpoint_pieces(
    storage: Storage, ledger: Ledger, view: VersionView, start: Start | None
) -> Iterator[list[Action]]:
    layout = layout_of(view.state)
    times = _Times(storage, ledger, view, start)
    gone = _tombstones(ledger, view, start)
    yield [*state_actions(view, start), *_txns(ledger, view)]
    for files in _live_pieces(ledger, view):
        vectors = describe(ledger, view.head.uuid, files)
        piece: list[Action] = []
        for live in files:
            # Removed and added again: what counts is that it is there.
            gone.pop(_key(live), None)
            time_ms = times.added(live)
            piece.append(add_of(layout, live, vectors, time_ms=time_ms, data_change=False))
        yield piece
    removed = list(gone.values())
    for first in range(0, len(removed), _PIECE):
        files = removed[first : first + _PIECE]
        vectors = describe(ledger, view.head.uuid, files)
        yield [
            remove_of(layout, f, vectors, time_ms=times.removed(f), data_change=False)
            for f in files
        ]


def _txns(ledger: Ledger, view: VersionView) -> list[Action]:
    applications = ledger.app_transactions(view.commit.version)
    return [TxnAction(app_id, number, time_ms) for app_id, number, time_ms in applications]


def _live_pieces(ledger: Ledger, view: VersionView) -> Iterator[list[LiveFile]]:
    first, width = 0, _PIECE
    while first < view.head.next_file_id:
        last = first + width - 1
        files = ledger.files_in_run(view.commit.version, first=first, last=last)
        if files:
            yield files
        first = last + 1
        width = min(2 * width, _WIDEST) if len(files) < _PIECE // 2 else _PIECE


_Key = tuple[str, VectorId | None]


def _key(live: LiveFile) -> _Key:
    """What Delta knows a file by: its path and its deletion vector."""
    return live.file.path, live.vector.id if live.vector else None


def _tombstones(ledger: Ledger, view: VersionView, start: Start | None) -> dict[_Key, LiveFile]:
    """Files removed so lately that the log still has to name them."""
    commit = view.commit
    expired = ledger.commit_before(commit.time_ms - retention_ms(view.state.properties))
    after = max(expired.version if expired else -1, start.version if start else -1)
    removed = ledger.removed_between(after=Version(after), up_to=commit.version)
    return {_key(f): f for f in sorted(removed, key=lambda f: f.removed_version or 0)}


def retention_ms(properties: Mapping[str, str]) -> int:
    """How long removed files stay named; Delta's own default for what is not a plain duration."""
    found = _DURATION.fullmatch(properties.get(_RETENTION, "").strip())
    return int(found[1]) * _UNIT_MS[found[2].lower()] if found else _WEEK_MS


class _Times:
    """Commit times of many files, without reading the whole history where it can be helped."""

    def __init__(
        self, storage: Storage, ledger: Ledger, view: VersionView, start: Start | None
    ) -> None:
        self._ledger = ledger
        self._head = view.head.version
        self._start = start.version if start else Version(0)
        self._times: dict[Version, int] = {}
        self._earlier = _earlier_checkpoint(ledger, view.commit.version, self._start)
        self._known: dict[str, int] = {}
        if self._earlier is not None:
            path = f"{view.head.location}/{self._earlier.path}"
            if storage.stat(path) is not None:
                self._known = known_times(storage, path)

    def added(self, live: LiveFile) -> int:
        # The log of a late start says that its first commit added everything.
        version = max(live.added_version, self._start)
        if self._earlier is not None and version <= self._earlier.version:
            known = self._known.get(encode_path(live.file.path))
            if known is not None:
                return known
        return self._of(version)

    def removed(self, live: LiveFile) -> int:
        assert live.removed_version is not None
        return self._of(live.removed_version)

    def _of(self, version: Version) -> int:
        limit = self._head - version + 1
        while version not in self._times:
            newest = self._ledger.commits(limit)
            self._times.update((commit.version, commit.time_ms) for commit in newest)
            limit *= 2  # other commits may have come meanwhile
        return self._times[version]


def _earlier_checkpoint(
    ledger: Ledger, version: Version, start: Version
) -> PublicationRecord | None:
    for record in ledger.publications(DELTA, "checkpoint", 10):
        if start <= record.version < version:
            return record
    return None
