"""SQL for what rides in a commit's transaction: application transactions and idempotency keys."""

from dataclasses import dataclass

from lakebed.meta.dialect import Row
from lakebed.meta.store import Tx
from lakebed.model.ids import MAIN_LINE, TableId, Version


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
    newest = tx.all(
        "SELECT app_id, number, time_ms, version FROM app_transactions WHERE table_id = ?"
        " ORDER BY app_id",
        (table_id,),
    )
    found = []
    for app_id, number, time_ms, made in newest:
        row = (number, time_ms) if made <= version else _app_before(tx, table_id, app_id, version)
        if row is not None:
            found.append((app_id, row[0], row[1]))
    return found


def _app_before(tx: Tx, table_id: TableId, app_id: str, version: Version) -> Row | None:
    """Numbers only grow: the newest commit of an application has its greatest."""
    return tx.one(
        "SELECT app_number, time_ms FROM commits"
        " WHERE table_id = ? AND line = ? AND version <= ? AND app_id = ?"
        " ORDER BY version DESC LIMIT 1",
        (table_id, MAIN_LINE, version, app_id),
    )


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
