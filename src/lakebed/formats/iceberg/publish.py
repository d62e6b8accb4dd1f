"""Publishes a version as Iceberg: manifests, their list, the metadata, and last the version hint.

Names and bytes follow from the rows alone, so that an interrupted publication is simply made again.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from lakebed.core.crash import crash_point
from lakebed.core.ledger import Ledger, VersionView
from lakebed.formats.base import Published, digest, put_once, record
from lakebed.formats.iceberg.entries import (
    Content,
    Shape,
    Written,
    encode,
    list_entry,
    record_of,
    shape_of,
)
from lakebed.formats.iceberg.manifest_files import (
    decode_manifest,
    decode_manifest_list,
    encode_manifest_list,
)
from lakebed.formats.iceberg.manifests import (
    ENTRIES_PER_MANIFEST,
    Draft,
    live_entries,
    plan,
)
from lakebed.formats.iceberg.metadata import (
    MetadataParts,
    known_schemas,
    known_specs,
    render_metadata,
    shows_the_same_version,
)
from lakebed.formats.iceberg.names import VERSION_HINT, Names, number_in_hint
from lakebed.model.errors import (
    DataCorrupt,
    ForeignCommit,
    ObjectMissing,
    PublishError,
    UnsupportedFeature,
)
from lakebed.model.files import LiveFile
from lakebed.model.history import ICEBERG, ManifestRecord, PublicationRecord, Snapshot
from lakebed.model.settings import Value
from lakebed.storage.base import Storage

_METADATA = "metadata"
_LOG_LENGTH = 10
_Decoded = tuple[dict[str, bytes], Sequence[object]]
_Decode = Callable[[bytes], _Decoded]


class IcebergPublisher:
    """`settings` gives a setting's value for a table with these properties."""

    format = ICEBERG

    def __init__(
        self, storage: Storage, settings: Callable[[str, Mapping[str, str]], Value]
    ) -> None:
        self._storage = storage
        self._settings = settings

    def publish(self, ledger: Ledger, view: VersionView, kind: str) -> Published:
        """Write the files of a version; `start` shows all live files, `commit` what it changed."""
        earlier = ledger.publications(ICEBERG, _METADATA, _LOG_LENGTH)
        if earlier and earlier[0].version >= view.commit.version:
            # Somebody else was faster; what is recorded stays as it is.
            self._move_hint(view, earlier[0].number)
            return Published(())
        number = earlier[0].number + 1 if earlier else 0
        keep = int(self._settings("publish.iceberg.keep", view.state.properties))
        published = ledger.published_snapshots(up_to=view.commit.version, limit=keep + 1)
        run = _Run(self._storage, ledger, view, Names(view.head.uuid, number))
        snapshots = run.write_snapshot(kind, published)
        path, data = run.write_metadata([*snapshots, *published], keep, earlier)
        crash_point("publish_iceberg_after_metadata")
        self._move_hint(view, number)
        return Published(
            (record(_METADATA, format_=ICEBERG, number=number, view=view, path=path, data=data),),
            manifests_added=tuple(run.manifests_added),
            manifests_retired=tuple(run.manifests_retired),
            manifest_lists={s.id: s.manifest_list for s in snapshots if s.manifest_list},
        )

    def _move_hint(self, view: VersionView, number: int) -> None:
        """Point readers of the folder at a publication, never back to an earlier one."""
        path, uuid = f"{view.head.location}/{VERSION_HINT}", view.head.uuid
        try:
            standing = number_in_hint(uuid, self._storage.get(path))
        except ObjectMissing:
            standing = None
        if standing is None or standing < number:
            self._storage.replace(path, Names(uuid, number).stem.encode())


class _Run:
    """One publication."""

    def __init__(self, storage: Storage, ledger: Ledger, view: VersionView, names: Names) -> None:
        self._storage = storage
        self._ledger = ledger
        self._view = view
        self._names = names
        self._root = view.head.location
        self._location = storage.location(self._root)
        self.manifests_added: list[ManifestRecord] = []
        self.manifests_retired: list[int] = []

    def write_snapshot(self, kind: str, published: list[Snapshot]) -> list[Snapshot]:
        """The version's snapshot with its manifest list; a change of no files has none."""
        view = self._view
        if len(view.snapshots) > 1:
            raise UnsupportedFeature(
                f"version {view.commit.version} has {len(view.snapshots)} snapshots",
                hint="a version of this lake's own makes at most one",
            )
        if not view.snapshots:
            self._check_nothing_to_show(kind)
            return []
        snapshot = view.snapshots[0]
        shape = self._shape()
        live = self._ledger.live_manifests()
        if kind == "start":
            carried: tuple[ManifestRecord, ...] = ()
            self.manifests_retired = [m.id for m in live]
            contents: Iterable[Content] = self._whole_state(snapshot)
        else:
            made = plan(live, view.added, view.removed, lineage=shape.format_version >= 3)
            carried = made.carried
            self.manifests_retired = list(made.retired)
            contents = (self._filled(draft) for draft in made.drafts)
        for index, content in enumerate(contents):
            self.manifests_added.append(self._write_manifest(shape, snapshot, content, index))
        crash_point("publish_iceberg_after_manifests")
        path = self._write_list(shape, snapshot, carried, published)
        crash_point("publish_iceberg_after_list")
        return [replace(snapshot, manifest_list=path)]

    def _check_nothing_to_show(self, kind: str) -> None:
        view = self._view
        if view.added or view.removed or (kind == "start" and next(self._live_files(), None)):
            raise PublishError(
                f"version {view.commit.version} has files to show and no snapshot to show them in",
                hint="run `lakebed check`; the rows of this version are incomplete",
                version=view.commit.version,
            )

    def _shape(self) -> Shape:
        state = self._view.state
        return shape_of(
            state.schema,
            known_schemas(state, self._ledger.schemas()),
            known_specs(state, self._ledger.specs()),
            state.iceberg_version,
            self._location,
        )

    def _filled(self, draft: Draft) -> Content:
        """What lives on in the manifests it replaces is read from the rows, never from files."""
        back = {f.id for f in draft.added}
        version = self._view.commit.version
        kept = [
            file
            for source in draft.sources
            for file in self._ledger.files_in_run(
                version, first=source.first_id, last=source.last_id
            )
            if file.file.spec_id == draft.spec_id and file.id not in back
        ]
        expected = sum(map(live_entries, draft.sources)) - len(draft.removed)
        if len(kept) != expected:
            raise PublishError(
                f"manifests of files {draft.first_id} to {draft.last_id} should leave"
                f" {expected} live files, the rows have {len(kept)}",
                hint="turn Iceberg publication off and on again for this table to start afresh",
            )
        return Content(
            draft.spec_id,
            draft.first_id,
            draft.last_id,
            kept,
            draft.added,
            draft.removed,
        )

    def _whole_state(self, snapshot: Snapshot) -> Iterator[Content]:
        """All live files, a manifest's worth at a time, each spec in manifests of its own."""
        waiting: dict[int, list[LiveFile]] = {}
        for file in self._live_files():
            files = waiting.setdefault(file.file.spec_id, [])
            files.append(file)
            if len(files) == ENTRIES_PER_MANIFEST:
                yield _as_found(waiting.pop(file.file.spec_id), snapshot)
        for spec_id in sorted(waiting):
            yield _as_found(waiting[spec_id], snapshot)

    def _live_files(self) -> Iterator[LiveFile]:
        step = ENTRIES_PER_MANIFEST
        for first in range(0, self._view.head.next_file_id, step):
            yield from self._ledger.files_in_run(
                self._view.commit.version, first=first, last=first + step - 1
            )

    def _write_manifest(
        self, shape: Shape, snapshot: Snapshot, content: Content, index: int
    ) -> ManifestRecord:
        path = self._names.manifest(index)
        data = encode(shape, snapshot, content, sync=self._names.sync(path))
        data = self._put(path, data, _same_manifest)
        written = Written(self._names.manifest_id(index), path, len(data), digest(data))
        return record_of(shape, snapshot, content, written)

    def _write_list(
        self,
        shape: Shape,
        snapshot: Snapshot,
        carried: tuple[ManifestRecord, ...],
        published: list[Snapshot],
    ) -> str:
        path = self._names.manifest_list(snapshot.id)
        manifests = sorted([*carried, *self.manifests_added], key=lambda m: (m.first_id, m.id))
        parent = next((s.id for s in published if s.id == snapshot.parent_id), None)
        data = encode_manifest_list(
            [list_entry(shape, m) for m in manifests],
            snapshot_id=snapshot.id,
            parent_snapshot_id=parent,
            sequence_number=snapshot.sequence_number,
            format_version=shape.format_version,
            first_row_id=snapshot.first_row_id,
            sync=self._names.sync(path),
        )
        self._put(path, data, _same_list)
        return path

    def write_metadata(
        self, snapshots: list[Snapshot], keep: int, earlier: list[PublicationRecord]
    ) -> tuple[str, bytes]:
        parts = MetadataParts(
            location=self._location,
            snapshots=snapshots[:keep],
            published=frozenset(s.id for s in snapshots),
            schemas=self._ledger.schemas(),
            specs=self._ledger.specs(),
            log=self._log(snapshots, earlier),
        )
        path, data = self._names.metadata, render_metadata(self._view, parts)
        return path, self._put(path, data, shows_the_same_version)

    def _log(
        self, snapshots: list[Snapshot], earlier: list[PublicationRecord]
    ) -> list[tuple[int, str]]:
        times: dict[int, int] = {s.version: s.time_ms for s in snapshots}
        others = [each.version for each in earlier if each.version not in times]
        if others:
            times |= self._ledger.commit_times(min(others), max(others))
        return [(times[each.version], each.path) for each in reversed(earlier)]

    def _put(self, path: str, data: bytes, same: Callable[[bytes, bytes], bool]) -> bytes:
        """The bytes that stand there now: ours, or those of an earlier try that says the same."""
        other = put_once(self._storage, self._root, path, data, time_ms=self._view.commit.time_ms)
        if other is None:
            return data
        if same(other, data):
            return other
        raise ForeignCommit(
            f"{path} of version {self._view.commit.version} holds something we did not write",
            hint="nothing was overwritten. Move the file away if nobody needs it, then run `lakebed"
            " publish`; if the lake's database is older than the file (a restored backup), import"
            " the table from its files under a new name",
            path=f"{self._root}/{path}",
            version=self._view.commit.version,
        )


def _as_found(files: list[LiveFile], snapshot: Snapshot) -> Content:
    new = [f for f in files if f.snapshot_id == snapshot.id]
    old = [f for f in files if f.snapshot_id != snapshot.id]
    return Content(files[0].file.spec_id, files[0].id, files[-1].id, old, new)


def _same_manifest(other: bytes, data: bytes) -> bool:
    return _same_entries(decode_manifest, other, data)


def _same_list(other: bytes, data: bytes) -> bool:
    return _same_entries(decode_manifest_list, other, data)


def _same_entries(decode: _Decode, other: bytes, data: bytes) -> bool:
    """Compressed by another library, the same entries are other bytes."""
    try:
        return _without_codec(decode(other)) == _without_codec(decode(data))
    except (DataCorrupt, UnsupportedFeature):
        return False


def _without_codec(decoded: _Decoded) -> _Decoded:
    metadata, entries = decoded
    return {k: v for k, v in metadata.items() if k != "avro.codec"}, entries
