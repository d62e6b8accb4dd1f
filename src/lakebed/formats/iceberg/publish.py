"""Publishes a version as Iceberg: manifests, their list, the metadata, and last the version hint.

Names and bytes follow from the rows alone, so that an interrupted publication is simply made again.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

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
from lakebed.formats.iceberg.listed import Listed, LiveVector, vectors_of
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
from lakebed.formats.iceberg.names import VERSION_HINT, Names, number_in_hint, puffin_path
from lakebed.formats.iceberg.puffin import VectorBlob, encode_puffin, same_vectors
from lakebed.formats.vector_files import VectorFiles
from lakebed.model.errors import (
    DataCorrupt,
    ForeignCommit,
    ObjectMissing,
    PublishError,
    UnsupportedFeature,
)
from lakebed.model.files import LiveFile
from lakebed.model.history import (
    DATA,
    DELETES,
    ICEBERG,
    ManifestRecord,
    PublicationRecord,
    Snapshot,
)
from lakebed.model.ids import SnapshotId
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
        written = record(_METADATA, format_=ICEBERG, number=number, view=view, path=path, data=data)
        return Published(
            (*run.puffins.values(), written),
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
        self.puffins: dict[int, PublicationRecord] = {}  # written now, by sequence number
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
            self._write_puffins(self._live_vectors(), anew=True)
            contents: Iterable[Content] = chain(
                self._whole_state(snapshot, DATA, self._live_files()),
                self._whole_state(snapshot, DELETES, self._live_vectors()),
            )
        else:
            self._write_puffins(vectors_of(view.added), anew=False)
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
        in_run = self._files_in_run if draft.content == DATA else self._vectors_in_run
        kept = [
            each
            for source in draft.sources
            for each in in_run(source.first_id, source.last_id)
            if each.file.spec_id == draft.spec_id and each.id not in back
        ]
        expected = sum(map(live_entries, draft.sources)) - len(draft.removed)
        if len(kept) != expected:
            raise PublishError(
                f"manifests of ids {draft.first_id} to {draft.last_id} should leave"
                f" {expected} live entries, the rows have {len(kept)}",
                hint="turn Iceberg publication off and on again for this table to start afresh",
            )
        content = Content(
            draft.content,
            draft.spec_id,
            draft.first_id,
            draft.last_id,
            kept,
            draft.added,
            draft.removed,
        )
        return self._with_puffins(content)

    def _with_puffins(self, content: Content) -> Content:
        if content.content == DATA:
            return content
        numbers = {each.sequence_number for each in content.all}
        earlier = self._ledger.vector_files(ICEBERG, sorted(numbers - self.puffins.keys()))
        return replace(content, puffins={**self.puffins, **earlier})

    def _whole_state(
        self, snapshot: Snapshot, content: int, live: Iterable[Listed]
    ) -> Iterator[Content]:
        """All that is live, a manifest's worth at a time, each spec in manifests of its own."""
        waiting: dict[int, list[Listed]] = {}
        for each in live:
            some = waiting.setdefault(each.file.spec_id, [])
            some.append(each)
            if len(some) == ENTRIES_PER_MANIFEST:
                found = _as_found(content, waiting.pop(each.file.spec_id), snapshot)
                yield self._with_puffins(found)
        for spec_id in sorted(waiting):
            yield self._with_puffins(_as_found(content, waiting[spec_id], snapshot))

    def _live_files(self) -> Iterator[LiveFile]:
        step = ENTRIES_PER_MANIFEST
        for first in range(0, self._view.head.next_file_id, step):
            yield from self._files_in_run(first, first + step - 1)

    def _live_vectors(self) -> Iterator[LiveVector]:
        step = ENTRIES_PER_MANIFEST
        for first in range(0, self._view.head.next_vector_id, step):
            yield from self._vectors_in_run(first, first + step - 1)

    def _files_in_run(self, first: int, last: int) -> Sequence[LiveFile]:
        return self._ledger.files_in_run(self._view.commit.version, first=first, last=last)

    def _vectors_in_run(self, first: int, last: int) -> Sequence[LiveVector]:
        version = self._view.commit.version
        return vectors_of(self._ledger.vectors_in_run(version, first=first, last=last))

    def _write_puffins(self, live: Iterable[LiveVector], *, anew: bool) -> None:
        files = VectorFiles(self._storage, ICEBERG, self._puffin, same_vectors)
        vectors = (each.vector for each in live)
        written = files.write(self._ledger, self._view, vectors, anew=anew)
        self.puffins = {each.number: each for each in written}
        crash_point("publish_iceberg_after_vectors")

    def _puffin(self, snapshot_id: SnapshotId) -> tuple[str, bytes]:
        made = self._ledger.vectors_of(snapshot_id)
        bitmaps = self._ledger.bitmaps([vector.id for vector, _ in made])
        blobs = [
            VectorBlob(
                data_file=f"{self._location}/{path}",
                cardinality=vector.cardinality,
                bitmap=bitmaps[vector.id],
                offset=vector.puffin_offset,
            )
            for vector, path in made
        ]
        return puffin_path(self._view.head.uuid, snapshot_id), encode_puffin(blobs)

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
        manifests = sorted([*carried, *self.manifests_added], key=_order)
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


def _order(manifest: ManifestRecord) -> tuple[int, int, int]:
    return manifest.content, manifest.first_id, manifest.id


def _as_found(content: int, live: Sequence[Listed], snapshot: Snapshot) -> Content:
    new = [each for each in live if each.snapshot_id == snapshot.id]
    old = [each for each in live if each.snapshot_id != snapshot.id]
    return Content(content, live[0].file.spec_id, live[0].id, live[-1].id, old, new)


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
