"""SQL for deletion vectors: bitmaps that are never changed."""

from collections.abc import Sequence

from lakebed.meta.dialect import Row
from lakebed.meta.store import Tx
from lakebed.model.ids import FileId, SnapshotId, TableId, VectorId
from lakebed.model.vectors import DeletionVector

_AT_ONCE = 100


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
    found: dict[VectorId, bytes] = {}
    for start in range(0, len(ids), _AT_ONCE):
        chunk = ids[start : start + _AT_ONCE]
        marks = ", ".join("?" * len(chunk))
        rows = tx.all(
            "SELECT vector_id, positions FROM deletion_vectors"
            f" WHERE table_id = ? AND vector_id IN ({marks})",
            (table_id, *chunk),
        )
        found |= {VectorId(row[0]): bytes(row[1]) for row in rows}
    return found


def vectors_of(tx: Tx, table_id: TableId, snapshot_id: SnapshotId) -> list[DeletionVector]:
    rows = tx.all(
        "SELECT vector_id, cardinality, size_bytes, sequence_number, snapshot_id, delta_offset,"
        " puffin_offset FROM deletion_vectors WHERE table_id = ? AND snapshot_id = ?"
        " ORDER BY vector_id",
        (table_id, snapshot_id),
    )
    return [to_vector(row) for row in rows]


def to_vector(row: Row) -> DeletionVector:
    return DeletionVector(
        VectorId(row[0]), row[1], row[2], row[3], SnapshotId(row[4]), row[5], row[6]
    )
