"""SQL for deletion vectors: bitmaps that are never changed."""

from collections.abc import Sequence

from lakebed.meta.dialect import Row
from lakebed.meta.store import Tx
from lakebed.model.ids import FileId, SnapshotId, TableId, VectorId
from lakebed.model.vectors import DeletionVector


def insert_vectors(
    tx: Tx, table_id: TableId, made: Sequence[tuple[DeletionVector, FileId, bytes]]
) -> None:
    tx.run_many(
        "INSERT INTO deletion_vectors (table_id, vector_id, file_id, cardinality, positions,"
        " size_bytes, sequence_number, snapshot_id, delta_offset, puffin_offset)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                table_id,
                vector.id,
                file_id,
                vector.cardinality,
                bitmap,
                vector.size_bytes,
                vector.sequence_number,
                vector.snapshot_id,
                vector.delta_offset,
                vector.puffin_offset,
            )
            for vector, file_id, bitmap in made
        ],
    )


def get_bitmaps(tx: Tx, table_id: TableId, ids: Sequence[VectorId]) -> dict[VectorId, bytes]:
    found = {}
    for vector_id in ids:
        row = tx.one(
            "SELECT positions FROM deletion_vectors WHERE table_id = ? AND vector_id = ?",
            (table_id, vector_id),
        )
        assert row is not None, (table_id, vector_id)
        found[vector_id] = bytes(row[0])
    return found


_VECTOR = (
    "SELECT vector_id, cardinality, size_bytes, sequence_number, snapshot_id, delta_offset,"
    " puffin_offset FROM deletion_vectors WHERE table_id = ?"
)
_MANY = 100


def get_vectors(
    tx: Tx, table_id: TableId, ids: Sequence[VectorId]
) -> dict[VectorId, DeletionVector]:
    """Without their bitmaps. Many are read as one run of ids, of which some may be too many."""
    if len(ids) > _MANY:
        run = (table_id, min(ids), max(ids))
        rows = tx.all(_VECTOR + " AND vector_id >= ? AND vector_id <= ?", run)
    else:
        found = (tx.one(_VECTOR + " AND vector_id = ?", (table_id, i)) for i in ids)
        rows = [row for row in found if row is not None]
    return {VectorId(row[0]): _vector(row) for row in rows}


def vectors_of(
    tx: Tx, table_id: TableId, snapshot_id: SnapshotId
) -> list[tuple[DeletionVector, str]]:
    """Each with the path of its data file."""
    rows = tx.all(
        "SELECT v.vector_id, v.cardinality, v.size_bytes, v.sequence_number, v.snapshot_id,"
        " v.delta_offset, v.puffin_offset, f.path FROM deletion_vectors v"
        " JOIN files f ON f.table_id = v.table_id AND f.file_id = v.file_id"
        # "+": by snapshot and sorted; in the order of ids SQLite would look at every vector.
        " WHERE v.table_id = ? AND v.snapshot_id = ? ORDER BY +v.vector_id",
        (table_id, snapshot_id),
    )
    return [(_vector(row), row[7]) for row in rows]


def _vector(row: Row) -> DeletionVector:
    return DeletionVector(
        VectorId(row[0]), row[1], row[2], row[3], SnapshotId(row[4]), row[5], row[6]
    )
