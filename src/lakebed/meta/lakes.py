"""SQL for the lake's own row and its settings."""

from lakebed.meta.store import Tx


def find_lake(tx: Tx) -> tuple[str, str] | None:
    """(uuid, warehouse URI) of an initialised lake."""
    row = tx.one("SELECT uuid, warehouse FROM lake")
    return (row[0], row[1]) if row else None


def insert_lake(tx: Tx, *, uuid: str, warehouse: str) -> bool:
    """False when another process was faster."""
    return bool(
        tx.run(
            "INSERT INTO lake (one, uuid, warehouse, created_ms) VALUES (1, ?, ?, ?)"
            " ON CONFLICT (one) DO NOTHING",
            (uuid, warehouse, tx.now_ms()),
        )
    )


def list_settings(tx: Tx) -> dict[str, str]:
    return dict(tx.all("SELECT name, value FROM settings"))


def put_setting(tx: Tx, name: str, value: str | None) -> None:
    tx.run("DELETE FROM settings WHERE name = ?", (name,))
    if value is not None:
        tx.run("INSERT INTO settings (name, value) VALUES (?, ?)", (name, value))
