"""SQL for tables, their schemas, specs, sort orders and states."""

from collections.abc import Iterable, Sequence
from functools import lru_cache

import orjson

from lakebed.meta.dialect import Row
from lakebed.meta.store import Store, Tx
from lakebed.model.constraints import constraints_from_record, constraints_to_record
from lakebed.model.history import TableHead, TableState
from lakebed.model.ids import StateId, TableId
from lakebed.model.names import TableName
from lakebed.model.partitioning import (
    PartitionSpec,
    SortOrder,
    order_from_record,
    order_to_record,
    spec_from_record,
    spec_to_record,
)
from lakebed.model.schema import Schema
from lakebed.model.schema_record import schema_from_record, schema_to_record

_HEAD = (
    "SELECT t.table_id, t.uuid, n.name, t.name, t.location, t.write_mode, t.created_ms,"
    " t.head_version, t.head_time_ms, t.state_id, t.snapshot_id, t.last_sequence_number,"
    " t.next_file_id, t.next_row_id, t.live_files, t.live_rows, t.live_bytes, t.live_vectors,"
    " t.live_deletes, t.next_vector_id, t.held_by, t.held_strict, t.held_until_ms, t.dropped_ms"
    " FROM tables t JOIN namespaces n ON n.namespace_id = t.namespace_id"
)
_BY_ID = _HEAD + " WHERE t.table_id = ?"


def find_table(tx: Tx, name: TableName) -> TableHead | None:
    row = tx.one(
        _HEAD + " WHERE n.name = ? AND t.name = ? AND t.dropped_ms IS NULL",
        (".".join(name.namespace), name.name),
    )
    return _head(row) if row else None


def get_table(tx: Tx, table_id: TableId) -> TableHead | None:
    """Also a dropped one: its publications may still be under way."""
    row = tx.one(_BY_ID, (table_id,))
    return _head(row) if row else None


def find_by_id(tx: Tx, table_id: TableId) -> TableHead | None:
    row = tx.one(_BY_ID, (table_id,))  # the same text, so that it is compiled once
    return _head(row) if row and row[-1] is None else None


def lock_tables(tx: Tx, table_ids: Sequence[TableId]) -> None:
    """Lock heads in id order, so that two commits over the same tables cannot deadlock."""
    for table_id in sorted(set(table_ids)):
        tx.lock("SELECT 1 FROM tables WHERE table_id = ?", (table_id,))


def list_tables(tx: Tx, namespace: str | None) -> list[TableHead]:
    if namespace is None:
        rows = tx.all(_HEAD + " WHERE t.dropped_ms IS NULL")
    else:
        rows = tx.all(_HEAD + " WHERE n.name = ? AND t.dropped_ms IS NULL", (namespace,))
    return sorted((_head(r) for r in rows), key=lambda h: h.name)


def dropped_tables(tx: Tx) -> list[TableHead]:
    return [_head(r) for r in tx.all(_HEAD + " WHERE t.dropped_ms IS NOT NULL")]


def location_taken(tx: Tx, location: str) -> bool:
    """Is a root equal to, inside or around this one? Dropped tables keep theirs until purged."""
    parts = location.split("/")
    around = ["/".join(parts[: n + 1]) for n in range(len(parts))]
    for path in around:
        if tx.one("SELECT 1 FROM tables WHERE location = ?", (path,)):
            return True
    inside = tx.one(
        "SELECT 1 FROM tables WHERE location >= ? AND location < ? LIMIT 1",
        (location + "/", location + "0"),  # "0" follows "/"
    )
    return inside is not None


def insert_table(tx: Tx, *, namespace_id: int, name: str, uuid: str, location: str) -> TableId:
    now = tx.now_ms()
    row = tx.one(
        "INSERT INTO tables (uuid, namespace_id, name, location, write_mode, created_ms,"
        " head_version, head_time_ms, state_id, last_sequence_number, next_file_id, next_row_id,"
        " live_files, live_rows, live_bytes)"
        " VALUES (?, ?, ?, ?, 'managed', ?, -1, 0, -1, 0, 0, 0, 0, 0, 0) RETURNING table_id",
        (uuid, namespace_id, name, location, now),
    )
    assert row is not None
    return TableId(row[0])


def advance_table(tx: Tx, to: TableHead) -> None:
    tx.run(
        "UPDATE tables SET head_version = ?, head_time_ms = ?, state_id = ?, snapshot_id = ?,"
        " last_sequence_number = ?, next_file_id = ?, next_row_id = ?, next_vector_id = ?,"
        " live_files = ?, live_rows = ?, live_bytes = ?, live_vectors = ?, live_deletes = ?"
        " WHERE table_id = ?",
        (
            to.version,
            to.time_ms,
            to.state_id,
            to.snapshot_id,
            to.last_sequence_number,
            to.next_file_id,
            to.next_row_id,
            to.next_vector_id,
            to.live_files,
            to.live_rows,
            to.live_bytes,
            to.live_vectors,
            to.live_deletes,
            to.id,
        ),
    )


def advance_counters(tx: Tx, to: TableHead) -> None:
    """What all lines of a table share: a commit on a branch moves nothing else of main."""
    tx.run(
        "UPDATE tables SET state_id = ?, last_sequence_number = ?, next_file_id = ?,"
        " next_row_id = ?, next_vector_id = ? WHERE table_id = ?",
        (
            to.state_id,
            to.last_sequence_number,
            to.next_file_id,
            to.next_row_id,
            to.next_vector_id,
            to.id,
        ),
    )


def hold_table(tx: Tx, table_id: TableId, hold: str, *, strict: bool, until_ms: int) -> bool:
    """Take a hold or make it last longer; False while somebody else has one."""
    taken = tx.run(
        "UPDATE tables SET held_by = ?, held_strict = ?, held_until_ms = ?"
        " WHERE table_id = ? AND (held_by = ? OR held_until_ms <= ?)",
        (hold, int(strict), until_ms, table_id, hold, tx.now_ms()),
    )
    return taken == 1


def release_table(tx: Tx, table_id: TableId, hold: str) -> None:
    tx.run(
        "UPDATE tables SET held_by = NULL, held_until_ms = 0 WHERE table_id = ? AND held_by = ?",
        (table_id, hold),
    )


def rename_table(tx: Tx, table_id: TableId, namespace_id: int, name: str) -> None:
    tx.run(
        "UPDATE tables SET namespace_id = ?, name = ? WHERE table_id = ?",
        (namespace_id, name, table_id),
    )


def mark_dropped(tx: Tx, table_id: TableId) -> None:
    tx.run("UPDATE tables SET dropped_ms = ? WHERE table_id = ?", (tx.now_ms(), table_id))


def delete_table(tx: Tx, table_id: TableId) -> None:
    """Remove every row of a purged table."""
    for statement in _DELETES:
        tx.run(statement, (table_id,))


_DELETES = (
    "DELETE FROM file_bounds WHERE table_id = ?",
    "DELETE FROM file_zones WHERE table_id = ?",
    "DELETE FROM file_indexes WHERE table_id = ?",
    "DELETE FROM table_extremes WHERE table_id = ?",
    "DELETE FROM leases WHERE table_id = ?",
    "DELETE FROM app_transactions WHERE table_id = ?",
    "DELETE FROM manifests WHERE table_id = ?",
    "DELETE FROM publications WHERE table_id = ?",
    "DELETE FROM outbox WHERE table_id = ?",
    "DELETE FROM refs WHERE table_id = ?",
    "DELETE FROM lines WHERE table_id = ?",
    "DELETE FROM file_intervals WHERE table_id = ?",
    "DELETE FROM deletion_vectors WHERE table_id = ?",
    "DELETE FROM files WHERE table_id = ?",
    "DELETE FROM snapshots WHERE table_id = ?",
    "DELETE FROM commits WHERE table_id = ?",
    "DELETE FROM table_states WHERE table_id = ?",
    "DELETE FROM sort_orders WHERE table_id = ?",
    "DELETE FROM partition_specs WHERE table_id = ?",
    "DELETE FROM table_schemas WHERE table_id = ?",
    "DELETE FROM tables WHERE table_id = ?",
)


def insert_state(tx: Tx, table_id: TableId, state: TableState, before: TableState | None) -> None:
    """Keep a state, and the schema, spec and sort order it names when they are new.

    Those of `before`, which was read from the rows, are there.
    """
    if before is None or before.schema != state.schema:
        _keep(tx, _KEEP_SCHEMA, table_id, state.schema.id, schema_to_record(state.schema))
    if before is None or before.spec != state.spec:
        _keep(tx, _KEEP_SPEC, table_id, state.spec.id, spec_to_record(state.spec))
    if before is None or before.sort_order != state.sort_order:
        _keep(tx, _KEEP_ORDER, table_id, state.sort_order.id, order_to_record(state.sort_order))
    tx.run(
        "INSERT INTO table_states (table_id, state_id, schema_id, spec_id, sort_order_id,"
        " properties, formats, last_column_id, last_partition_id, iceberg_version, delta_mapping,"
        " delta_partitioned, comment, delta_vectors, constraints)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            table_id,
            state.id,
            state.schema.id,
            state.spec.id,
            state.sort_order.id,
            orjson.dumps(dict(state.properties)).decode(),
            ",".join(state.formats),
            state.last_column_id,
            state.last_partition_id,
            state.iceberg_version,
            int(state.delta_mapping),
            int(state.delta_partitioned),
            state.comment,
            int(state.delta_vectors),
            orjson.dumps(constraints_to_record(state.constraints)).decode(),
        ),
    )


def keep_shapes(
    tx: Tx, table_id: TableId, schemas: Iterable[Schema], specs: Iterable[PartitionSpec]
) -> None:
    """Those that a commit passed through: files may be written under them."""
    for schema in schemas:
        _keep(tx, _KEEP_SCHEMA, table_id, schema.id, schema_to_record(schema))
    for spec in specs:
        _keep(tx, _KEEP_SPEC, table_id, spec.id, spec_to_record(spec))


_KEEP_SCHEMA = (
    (
        "INSERT INTO table_schemas (table_id, schema_id, body) VALUES (?, ?, ?)"
        " ON CONFLICT (table_id, schema_id) DO NOTHING"
    ),
    "SELECT body FROM table_schemas WHERE table_id = ? AND schema_id = ?",
)
_KEEP_SPEC = (
    (
        "INSERT INTO partition_specs (table_id, spec_id, body) VALUES (?, ?, ?)"
        " ON CONFLICT (table_id, spec_id) DO NOTHING"
    ),
    "SELECT body FROM partition_specs WHERE table_id = ? AND spec_id = ?",
)
_KEEP_ORDER = (
    (
        "INSERT INTO sort_orders (table_id, sort_order_id, body) VALUES (?, ?, ?)"
        " ON CONFLICT (table_id, sort_order_id) DO NOTHING"
    ),
    "SELECT body FROM sort_orders WHERE table_id = ? AND sort_order_id = ?",
)


def _keep(tx: Tx, kind: tuple[str, str], table_id: TableId, number: int, record: object) -> None:
    insert, select = kind
    body = orjson.dumps(record).decode()
    if tx.run(insert, (table_id, number, body)) == 0:
        found = tx.one(select, (table_id, number))
        assert found is not None and found[0] == body, f"{number} means something else already"


def get_state(tx: Tx, table_id: TableId, state_id: StateId) -> TableState:
    return tx.keep(("state", table_id, state_id), lambda: _load_state(tx, table_id, state_id))


def known_state(store: Store, table_id: TableId, state_id: StateId) -> TableState | None:
    """If it was read before: then no transaction is needed."""
    found: TableState | None = store.kept.get(("state", table_id, state_id))
    return found


def _load_state(tx: Tx, table_id: TableId, state_id: StateId) -> TableState:
    row = tx.one(
        "SELECT s.state_id, c.body, p.body, o.body, s.properties, s.formats, s.last_column_id,"
        " s.last_partition_id, s.iceberg_version, s.delta_mapping, s.delta_partitioned, s.comment,"
        " s.delta_vectors, s.constraints FROM table_states s"
        " JOIN table_schemas c ON c.table_id = s.table_id AND c.schema_id = s.schema_id"
        " JOIN partition_specs p ON p.table_id = s.table_id AND p.spec_id = s.spec_id"
        " JOIN sort_orders o ON o.table_id = s.table_id AND o.sort_order_id = s.sort_order_id"
        " WHERE s.table_id = ? AND s.state_id = ?",
        (table_id, state_id),
    )
    assert row is not None, (table_id, state_id)
    return TableState(
        StateId(row[0]),
        _schema(row[1]),
        _spec(row[2]),
        _order(row[3]),
        orjson.loads(row[4]),
        tuple(row[5].split(",")),
        row[6],
        row[7],
        row[8],
        bool(row[9]),
        bool(row[10]),
        row[11],
        bool(row[12]),
        constraints_from_record(orjson.loads(row[13])),
    )


def list_schemas(tx: Tx, table_id: TableId) -> list[Schema]:
    rows = tx.all(
        "SELECT body FROM table_schemas WHERE table_id = ? ORDER BY schema_id",
        (table_id,),
    )
    return [_schema(body) for (body,) in rows]


# Many states and versions share them: each is read once, and is the same object ever after.
@lru_cache(maxsize=1024)
def _schema(body: str) -> Schema:
    return schema_from_record(orjson.loads(body))


@lru_cache(maxsize=1024)
def _spec(body: str) -> PartitionSpec:
    return spec_from_record(orjson.loads(body))


@lru_cache(maxsize=1024)
def _order(body: str) -> SortOrder:
    return order_from_record(orjson.loads(body))


def list_specs(tx: Tx, table_id: TableId) -> list[PartitionSpec]:
    rows = tx.all(
        "SELECT body FROM partition_specs WHERE table_id = ? ORDER BY spec_id", (table_id,)
    )
    return [_spec(body) for (body,) in rows]


def list_orders(tx: Tx, table_id: TableId) -> list[SortOrder]:
    rows = tx.all(
        "SELECT body FROM sort_orders WHERE table_id = ? ORDER BY sort_order_id", (table_id,)
    )
    return [_order(body) for (body,) in rows]


def _head(row: Row) -> TableHead:
    name = TableName(tuple(row[2].split(".")), row[3])
    return TableHead(TableId(row[0]), row[1], name, *row[4:-1])
