"""One publication: manifests, their list, and the metadata file, each written once."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from lakebed.core.ledger import Ledger, VersionView
from lakebed.formats.base import digest, put_once
from lakebed.formats.iceberg.contents import Contents
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
from lakebed.formats.iceberg.manifests import plan
from lakebed.formats.iceberg.metadata import (
    MetadataParts,
    known_schemas,
    known_specs,
    render_metadata,
    shows_the_same_version,
)
from lakebed.formats.iceberg.names import Names
from lakebed.formats.iceberg.shown import Shown
from lakebed.model.errors import DataCorrupt, ForeignCommit, PublishError, UnsupportedFeature
from lakebed.model.history import (
    ICEBERG,
    CommitRecord,
    ManifestRecord,
    PublicationRecord,
    Snapshot,
    TableState,
)
from lakebed.model.ids import MAIN_LINE, Version
from lakebed.storage.base import Bundle

METADATA = "metadata"  # the kind of publication that a metadata file is
_Decoded = tuple[dict[str, bytes], Sequence[object]]
_Decode = Callable[[bytes], _Decoded]


class Run:
    """One publication of one version of a line."""

    def __init__(self, storage: Bundle, ledger: Ledger, view: VersionView, names: Names) -> None:
        self._storage = storage
        self._ledger = ledger
        self._view = view
        self._names = names
        self._root = view.head.location
        self._location = storage.location(self._root)
        self.contents = Contents(storage, ledger, view)
        self.manifests_added: list[ManifestRecord] = []
        self.manifests_retired: list[int] = []
        self.rendered = b""

    def write_snapshot(self, kind: str) -> list[Snapshot]:
        """The version's snapshot with its manifest list; a change of no files has none."""
        view = self._view
        if len(view.snapshots) > 1:
            raise UnsupportedFeature(
                f"version {view.commit.version} has {len(view.snapshots)} snapshots",
                hint="a version of this lake's own makes at most one",
            )
        if not view.snapshots:
            return self._follow(kind)
        snapshot = view.snapshots[0]
        parent = self._published(snapshot)
        if kind == "start" or (snapshot.line != MAIN_LINE and snapshot.parent_id and not parent):
            return [self._write_whole(snapshot, parent)]
        live, own = self._base()
        shape = self._shape()
        self.contents.write_added_vectors()
        lineage = shape.format_version >= 3
        numbered = self.contents.numbered(live) if lineage else {}
        live = [numbered.get(m.id, m) for m in live]
        made = plan(live, view.added, view.removed, lineage=lineage)
        self._write_manifests(shape, snapshot, (self.contents.filled(d) for d in made.drafts))
        renewed = [m for m in made.carried if m.id in numbered]
        self._adopt(renewed)
        carried = [m for m in made.carried if m.id not in numbered]
        written = self._write_list(shape, snapshot, carried, parent)
        if own:
            self.manifests_retired = sorted([*made.retired, *(m.id for m in renewed)])
        else:
            self._adopt(carried)
        return [written]

    def _write_whole(self, snapshot: Snapshot, parent: Snapshot | None) -> Snapshot:
        """All that is live, whatever was published before."""
        self.manifests_retired = [m.id for m in self._live_manifests()]
        shape = self._shape()
        self.contents.write_live_vectors()
        self._write_manifests(shape, snapshot, self.contents.whole_state(snapshot))
        return self._write_list(shape, snapshot, (), parent)

    def _follow(self, kind: str) -> list[Snapshot]:
        """Without a snapshot of its own: main may have taken a branch's, with its manifests."""
        current = self._view.commit.snapshot_id
        taken = self._ledger.snapshot(current) if current is not None else None
        if taken is None or taken.line == MAIN_LINE or self._view.commit.line != MAIN_LINE:
            self._check_nothing_to_show(kind)
            self._keep_base()
            return []
        if taken.manifest_list is None:  # made while Iceberg was off
            return [self._write_whole(taken, self._published(taken))]
        shown = self._ledger.publication_at(ICEBERG, METADATA, taken.line, taken.version)
        theirs = self._ledger.manifests_at(taken.line, shown.number) if shown else []
        ours = self._live_manifests()
        paths, kept = {m.path for m in theirs}, {m.path for m in ours}
        self.manifests_retired = [m.id for m in ours if m.path not in paths]
        self._adopt([m for m in theirs if m.path not in kept])
        return []

    def _keep_base(self) -> None:
        """What a branch shows from here on is its own, though nothing of it is new."""
        live, own = self._base()
        if not own:
            self._adopt(live)

    def _check_nothing_to_show(self, kind: str) -> None:
        view = self._view
        shows = view.added or view.removed
        if shows or (kind == "start" and next(self.contents.live_files(), None)):
            raise PublishError(
                f"version {view.commit.version} has files to show and no snapshot to show them in",
                hint="run `lakebed check`; the rows of this version are incomplete",
                version=view.commit.version,
            )

    def _published(self, snapshot: Snapshot) -> Snapshot | None:
        """Its parent, if readers have it."""
        found = self._ledger.snapshot(snapshot.parent_id) if snapshot.parent_id else None
        return found if found is not None and found.manifest_list is not None else None

    def _base(self) -> tuple[list[ManifestRecord], bool]:
        """The manifests of the version before; False when they are another line's."""
        line, version = self._view.commit.line, self._view.commit.version
        if line == MAIN_LINE:
            return self._live_manifests(), True
        own = line
        while line != MAIN_LINE:
            shown = self._ledger.publication_at(ICEBERG, METADATA, line, version)
            if shown is not None:
                break
            fork = self._ledger.line(line)
            line, version = fork.parent_line, fork.fork_version
        shown = self._ledger.publication_at(ICEBERG, METADATA, line, version)
        found = self._ledger.manifests_at(line, shown.number) if shown else []
        return found, line == own

    def _live_manifests(self) -> list[ManifestRecord]:
        return self._ledger.live_manifests(self._view.commit.line)

    def _adopt(self, manifests: Iterable[ManifestRecord]) -> None:
        """Manifests of another line, or of before the table had row ids, become this one's too."""
        for manifest in manifests:
            number = self._names.manifest_id(len(self.manifests_added))
            self.manifests_added.append(replace(manifest, id=number))

    def _shape(self) -> Shape:
        state = self._view.state
        return shape_of(
            state.schema,
            known_schemas(state, self._ledger.schemas()),
            known_specs(state, self._ledger.specs()),
            state.iceberg_version,
            self._location,
        )

    def _write_manifests(
        self, shape: Shape, snapshot: Snapshot, contents: Iterable[Content]
    ) -> None:
        for content in contents:
            index = len(self.manifests_added)
            path = self._names.manifest(index)
            data = encode(shape, snapshot, content, sync=self._names.sync(path))
            data = self._put(path, data, _same_manifest)
            written = Written(self._names.manifest_id(index), path, len(data), digest(data))
            self.manifests_added.append(record_of(shape, snapshot, content, written))

    def _write_list(
        self,
        shape: Shape,
        snapshot: Snapshot,
        carried: Sequence[ManifestRecord],
        parent: Snapshot | None,
    ) -> Snapshot:
        path = self._names.manifest_list(snapshot.id)
        manifests = sorted([*carried, *self.manifests_added], key=_order)
        data = encode_manifest_list(
            [list_entry(shape, m) for m in manifests],
            snapshot_id=snapshot.id,
            parent_snapshot_id=parent.id if parent else None,
            sequence_number=snapshot.sequence_number,
            format_version=shape.format_version,
            first_row_id=snapshot.first_row_id,
            sync=self._names.sync(path),
        )
        self._put(path, data, _same_list)
        return replace(snapshot, manifest_list=path)

    def write_metadata(
        self,
        state: TableState,
        shown: Shown,
        main: CommitRecord,
        earlier: list[PublicationRecord],
    ) -> tuple[str, bytes]:
        parts = MetadataParts(
            uuid=self._view.head.uuid,
            location=self._location,
            state=state,
            shown=shown,
            updated_ms=max(main.time_ms, shown.newest.time_ms if shown.newest else 0),
            schemas=self._ledger.schemas(),
            specs=self._ledger.specs(),
            log=self._log(shown, earlier),
        )
        path, self.rendered = self._names.metadata, render_metadata(parts)
        return path, self._put(path, self.rendered, shows_the_same_version)

    def _log(self, shown: Shown, earlier: list[PublicationRecord]) -> list[tuple[int, str]]:
        """Earlier metadata files; times never go back, though a change of refs has none."""
        times = {(s.line, s.version): s.time_ms for s in shown.listed}
        others = [
            each.version
            for each in earlier
            if each.line == MAIN_LINE and (each.line, each.version) not in times
        ]
        if others:
            found = self._ledger.commit_times(min(others), max(others))
            times |= {(MAIN_LINE, Version(version)): time for version, time in found.items()}
        log: list[tuple[int, str]] = []
        for each in reversed(earlier):
            before = log[-1][0] if log else 0
            log.append((max(times.get((each.line, each.version), 0), before), each.path))
        return log

    def _put(self, path: str, data: bytes, same: Callable[[bytes, bytes], bool]) -> bytes:
        """The bytes that stand there now: ours, or those of an earlier try that says the same."""
        time_ms = self._view.commit.time_ms
        other = put_once(self._storage, self._root, path, data, time_ms=time_ms)
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
