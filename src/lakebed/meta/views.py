"""SQL for views."""

import uuid

import orjson

from lakebed.meta.dialect import Row
from lakebed.meta.store import Tx
from lakebed.model.names import TableName
from lakebed.model.views import View

_VIEW = (
    "SELECT n.name, v.name, v.body, v.version FROM views v"
    " JOIN namespaces n ON n.namespace_id = v.namespace_id"
)


def put_view(tx: Tx, namespace_id: int, view: View) -> None:
    """A new view, or the next version of one."""
    now = tx.now_ms()
    tx.run(
        "INSERT INTO views (uuid, namespace_id, name, body, version, created_ms, changed_ms)"
        " VALUES (?, ?, ?, ?, 0, ?, ?)"
        " ON CONFLICT (namespace_id, name) DO UPDATE SET body = EXCLUDED.body,"
        " version = views.version + 1, changed_ms = EXCLUDED.changed_ms",
        (str(uuid.uuid4()), namespace_id, view.name.name, _body(view), now, now),
    )


def find_view(tx: Tx, name: TableName) -> View | None:
    row = tx.one(_VIEW + " WHERE n.name = ? AND v.name = ?", (".".join(name.namespace), name.name))
    return _view(row) if row else None


def list_views(tx: Tx, namespace: str | None) -> list[View]:
    rows = tx.all(_VIEW)
    found = sorted((_view(row) for row in rows), key=lambda v: v.name)
    return [v for v in found if namespace in (None, ".".join(v.name.namespace))]


def delete_view(tx: Tx, name: TableName) -> bool:
    return (
        tx.run(
            "DELETE FROM views WHERE name = ? AND namespace_id ="
            " (SELECT namespace_id FROM namespaces WHERE name = ?)",
            (name.name, ".".join(name.namespace)),
        )
        == 1
    )


def _body(view: View) -> str:
    plain = {
        "sql": view.sql,
        "namespace": view.namespace,
        "columns": view.columns,
        "comment": view.comment,
        "properties": dict(view.properties),
    }
    return orjson.dumps(plain).decode()


def _view(row: Row) -> View:
    plain = orjson.loads(row[2])
    return View(
        name=TableName(tuple(row[0].split(".")), row[1]),
        sql=plain["sql"],
        namespace=tuple(plain["namespace"]),
        columns=tuple((name, comment) for name, comment in plain["columns"]),
        comment=plain["comment"],
        properties=plain["properties"],
        version=row[3],
    )
