"""Publishes the files that hold deletion vectors: one per format and snapshot that made any."""

from collections.abc import Callable, Iterable
from operator import eq

from lakebed.core.ledger import Ledger, VersionView
from lakebed.formats.base import put_once, record
from lakebed.model.errors import ForeignCommit
from lakebed.model.history import VECTORS, PublicationRecord
from lakebed.model.ids import SnapshotId
from lakebed.model.vectors import DeletionVector
from lakebed.storage.base import Bundle

# Cleaners of both formats leave folders alone whose names begin with an underscore.
FOLDER = "_deletes"


class VectorFiles:
    """Of one format: `render` gives a snapshot's file, its path and bytes, from the rows."""

    def __init__(
        self,
        storage: Bundle,
        format_: str,
        render: Callable[[SnapshotId], tuple[str, bytes]],
        same: Callable[[bytes, bytes], bool] = eq,
    ) -> None:
        self._storage = storage
        self._format = format_
        self._render = render
        self._same = same

    def write(
        self, ledger: Ledger, view: VersionView, vectors: Iterable[DeletionVector], *, anew: bool
    ) -> list[PublicationRecord]:
        """Those that hold the vectors and were not written before.

        A restored vector comes back long after its snapshot. `anew`: all, and damaged ones mended.
        """
        snapshots = {v.sequence_number: v.snapshot_id for v in vectors}
        # Those of the version's own snapshot are recorded with it, so they cannot be yet.
        older = snapshots.keys() - {s.sequence_number for s in view.snapshots}
        known = ledger.vector_files(self._format, sorted(older)) if older and not anew else {}
        return [
            self._write(view, number, snapshots[number], anew=anew)
            for number in sorted(snapshots.keys() - known.keys())
        ]

    def _write(
        self, view: VersionView, number: int, snapshot_id: SnapshotId, *, anew: bool
    ) -> PublicationRecord:
        path, data = self._render(snapshot_id)
        root = view.head.location
        other = put_once(self._storage, root, path, data, time_ms=view.commit.time_ms)
        if other is not None and self._same(other, data):
            data = other
        elif other is not None and anew:
            self._storage.replace(f"{root}/{path}", data)
        elif other is not None:
            raise ForeignCommit(
                f"{path} holds something we did not write, not the deletion vectors of snapshot"
                f" {snapshot_id}",
                hint="nothing was overwritten. Move the file away, then run `lakebed publish`",
                path=f"{root}/{path}",
                version=view.commit.version,
            )
        return record(VECTORS, format_=self._format, number=number, view=view, path=path, data=data)
