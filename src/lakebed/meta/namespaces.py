"""SQL for namespaces. A namespace is kept by its dotted name, with its parent's beside it."""

from collections.abc import Mapping

import orjson

from lakebed.meta.store import Tx


def find_namespace(tx: Tx, name: str) -> tuple[int, dict[str, str]] | None:
    row = tx.one("SELECT namespace_id, properties FROM namespaces WHERE name = ?", (name,))
    return (row[0], orjson.loads(row[1])) if row else None


def lock_namespace(tx: Tx, name: str) -> int | None:
    """The id, held until the transaction ends, so that it cannot be dropped under a new table."""
    row = tx.locked("SELECT namespace_id FROM namespaces WHERE name = ?", (name,))
    return row[0] if row else None


def insert_namespace(tx: Tx, name: str, properties: Mapping[str, str]) -> bool:
    """False when it exists already."""
    parent = name.rpartition(".")[0]
    return bool(
        tx.run(
            "INSERT INTO namespaces (name, parent, properties, created_ms) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (name) DO NOTHING",
            (name, parent, orjson.dumps(dict(properties)).decode(), tx.now_ms()),
        )
    )


def update_namespace(tx: Tx, name: str, properties: Mapping[str, str]) -> None:
    body = orjson.dumps(dict(properties)).decode()
    tx.run("UPDATE namespaces SET properties = ? WHERE name = ?", (body, name))


def delete_namespace(tx: Tx, namespace_id: int) -> None:
    tx.run("DELETE FROM namespaces WHERE namespace_id = ?", (namespace_id,))


def list_namespaces(tx: Tx, parent: str | None) -> list[str]:
    """Direct children of a parent ('' is the root); all of them when None."""
    if parent is None:
        rows = tx.all("SELECT name FROM namespaces")
    else:
        rows = tx.all("SELECT name FROM namespaces WHERE parent = ?", (parent,))
    return sorted(name for (name,) in rows)


def has_tables(tx: Tx, namespace_id: int) -> bool:
    row = tx.one("SELECT 1 FROM tables WHERE namespace_id = ? LIMIT 1", (namespace_id,))
    return row is not None
