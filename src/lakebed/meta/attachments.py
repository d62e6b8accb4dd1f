"""SQL for what rides in a commit's transaction: application transactions and idempotency keys."""

from dataclasses import dataclass

from lakebed.meta.store import Tx
from lakebed.model.ids import TableId, Version


@dataclass(frozen=True, slots=True)
class Answer:
    """What was answered to a request with an idempotency key."""

    digest: str
    status: str  # done or refused
    result: str


def find_app_transaction(tx: Tx, table_id: TableId, app_id: str) -> tuple[int, Version] | None:
    """(number, version) of the newest commit of an application."""
    row = tx.one(
        "SELECT number, version FROM app_transactions WHERE table_id = ? AND app_id = ?",
        (table_id, app_id),
    )
    return (row[0], Version(row[1])) if row else None


def put_app_transaction(
    tx: Tx, table_id: TableId, app: tuple[str, int], version: Version, time_ms: int
) -> None:
    tx.run(
        "INSERT INTO app_transactions (table_id, app_id, number, version, time_ms)"
        " VALUES (?, ?, ?, ?, ?) ON CONFLICT (table_id, app_id) DO UPDATE"
        " SET number = excluded.number, version = excluded.version, time_ms = excluded.time_ms",
        (table_id, app[0], app[1], version, time_ms),
    )


def app_transactions_at(tx: Tx, table_id: TableId, version: Version) -> list[tuple[str, int, int]]:
    """(application, number, time) in force at a version."""
    return [
        (row[0], row[1], row[2])
        for row in tx.all(
            "SELECT app_id, MAX(app_number), MAX(time_ms) FROM commits"
            " WHERE table_id = ? AND version <= ? AND app_id IS NOT NULL"
            " GROUP BY app_id ORDER BY app_id",
            (table_id, version),
        )
    ]


def find_answer(tx: Tx, principal: str, key: str) -> Answer | None:
    row = tx.one(
        "SELECT digest, status, result FROM idempotency WHERE principal = ? AND key = ?",
        (principal, key),
    )
    return Answer(*row) if row else None


def insert_answer(tx: Tx, principal: str, key: str, answer: Answer) -> bool:
    """False when another request with the same key was answered first."""
    return bool(
        tx.run(
            "INSERT INTO idempotency (principal, key, digest, status, result, created_ms)"
            " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (principal, key) DO NOTHING",
            (principal, key, answer.digest, answer.status, answer.result, tx.now_ms()),
        )
    )
