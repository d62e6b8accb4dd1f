"""What manifests list, read from the rows of one version: what lives on, or all there is."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from lakebed.core.ledger import Ledger, VersionView
from lakebed.formats.iceberg.entries import Content
from lakebed.formats.iceberg.listed import Listed, LiveVector, vectors_of
from lakebed.formats.iceberg.manifests import ENTRIES_PER_MANIFEST, Draft, live_entries
from lakebed.formats.iceberg.names import puffin_path
from lakebed.formats.iceberg.puffin import VectorBlob, encode_puffin, same_vectors
from lakebed.formats.vector_files import VectorFiles
from lakebed.model.errors import PublishError
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
from lakebed.storage.base import Bundle


class Contents:
    """Of one version of a line. Files of vectors are written first: manifests tell their sizes."""

    def __init__(self, storage: Bundle, ledger: Ledger, view: VersionView) -> None:
        self._storage = storage
        self._ledger = ledger
        self._view = view
        self._location = storage.location(view.head.location)
        self.puffins: dict[int, PublicationRecord] = {}  # written now, by sequence number

    def write_added_vectors(self) -> None:
        self._write_puffins(vectors_of(self._view.added), anew=False)

    def write_live_vectors(self) -> None:
        self._write_puffins(self._live_vectors(), anew=True)

    def _write_puffins(self, live: Iterable[LiveVector], *, anew: bool) -> None:
        files = VectorFiles(self._storage, ICEBERG, self._puffin, same_vectors)
        vectors = (each.vector for each in live)
        written = files.write(self._ledger, self._view, vectors, anew=anew)
        self.puffins = {each.number: each for each in written}

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

    def numbered(self, live: Sequence[ManifestRecord]) -> dict[int, ManifestRecord]:
        """Manifests without row ids whose entries inherit the right ones from the list, by id.

        Readers count up from the list's number in the order of the entries: the files' own order.
        """
        found = {}
        for manifest in live:
            if manifest.content != DATA or manifest.first_row_id is not None or manifest.counts[2]:
                continue
            if manifest.last_id - manifest.first_id + 1 != live_entries(manifest):
                continue  # files between them are gone, or of another spec, and count too
            rows = self._ledger.row_numbers(manifest.first_id, manifest.last_id)
            if len(rows) == live_entries(manifest) and _is_counted_up(rows):
                found[manifest.id] = replace(manifest, first_row_id=rows[0][0])
        return found

    def filled(self, draft: Draft) -> Content:
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

    def whole_state(self, snapshot: Snapshot) -> Iterator[Content]:
        yield from self._grouped(snapshot, DATA, self.live_files())
        yield from self._grouped(snapshot, DELETES, self._live_vectors())

    def _grouped(
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

    def _with_puffins(self, content: Content) -> Content:
        if content.content == DATA:
            return content
        numbers = {each.sequence_number for each in content.all}
        earlier = self._ledger.vector_files(ICEBERG, sorted(numbers - self.puffins.keys()))
        return replace(content, puffins={**self.puffins, **earlier})

    def live_files(self) -> Iterator[LiveFile]:
        step = ENTRIES_PER_MANIFEST
        for first in range(0, self._view.head.next_file_id, step):
            yield from self._files_in_run(first, first + step - 1)

    def _live_vectors(self) -> Iterator[LiveVector]:
        step = ENTRIES_PER_MANIFEST
        for first in range(0, self._view.head.next_vector_id, step):
            yield from self._vectors_in_run(first, first + step - 1)

    def _files_in_run(self, first: int, last: int) -> Sequence[LiveFile]:
        commit = self._view.commit
        return self._ledger.files_in_run(commit.version, first=first, last=last, line=commit.line)

    def _vectors_in_run(self, first: int, last: int) -> Sequence[LiveVector]:
        commit = self._view.commit
        found = self._ledger.vectors_in_run(
            commit.version, first=first, last=last, line=commit.line
        )
        return vectors_of(found)


def _is_counted_up(rows: Sequence[tuple[int | None, int]]) -> bool:
    expected = rows[0][0]
    for first_row_id, count in rows:
        if first_row_id is None or first_row_id != expected:
            return False
        expected += count
    return True


def _as_found(content: int, live: Sequence[Listed], snapshot: Snapshot) -> Content:
    new = [each for each in live if each.snapshot_id == snapshot.id]
    old = [each for each in live if each.snapshot_id != snapshot.id]
    return Content(content, live[0].file.spec_id, live[0].id, live[-1].id, old, new)
