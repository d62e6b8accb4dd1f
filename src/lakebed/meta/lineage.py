"""SQL for lineage: which tables were made from which, and by which run."""

from collections.abc import Sequence

import orjson

from lakebed.meta.dialect import Row
from lakebed.meta.store import Tx
from lakebed.model.ids import TableId, Version
from lakebed.model.runs import Derivation, LineageEdge

_EDGE = (
    "SELECT l.output, l.output_version, l.input, l.input_id, l.after_version, l.until_version,"
    " l.columns, l.run_id, r.pipeline FROM lineage l JOIN runs r ON r.run_id = l.run_id"
)


def insert_lineage(
    tx: Tx, run_id: str, made: Sequence[tuple[Derivation, TableId, Version]]
) -> None:
    """Each with the table that was made, and its version."""
    tx.run_many(
        "INSERT INTO lineage (run_id, output_id, output, output_version, input, input_id,"
        " after_version, until_version, columns) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                run_id,
                table_id,
                d.output,
                version,
                d.input,
                d.input_id,
                d.after,
                d.until,
                orjson.dumps(d.columns).decode(),
            )
            for d, table_id, version in made
        ],
    )


def made_from(tx: Tx, table_id: TableId) -> list[LineageEdge]:
    """What a table was made from; the newest commit of each input first."""
    rows = tx.all(_EDGE + " WHERE l.output_id = ? ORDER BY l.output_version DESC", (table_id,))
    return [_edge(row) for row in rows]


def made_of_it(tx: Tx, table_id: TableId) -> list[tuple[TableId, LineageEdge]]:
    """What was made from a table, newest first, with the ids of those tables."""
    rows = tx.all(
        "SELECT l.output, l.output_version, l.input, l.input_id, l.after_version, l.until_version,"
        " l.columns, l.run_id, r.pipeline, l.output_id FROM lineage l"
        " JOIN runs r ON r.run_id = l.run_id WHERE l.input_id = ?"
        " ORDER BY r.started_ms DESC, l.output_version DESC",
        (table_id,),
    )
    return [(TableId(row[9]), _edge(row)) for row in rows]


def _edge(row: Row) -> LineageEdge:
    columns = {name: tuple(sources) for name, sources in orjson.loads(row[6]).items()}
    output, version, given, given_id, after, until = row[:6]
    return LineageEdge(output, version, given, given_id, after, until, columns, row[7], row[8])
