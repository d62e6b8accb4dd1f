"""A history as told by its model, read by everybody: the lake's own readers and stock ones."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
from pyiceberg.table import StaticTable

import lakebed
from lakebed.engines.arrow.read import read
from lakebed.storage import open_storage
from tests.interop import expected
from tests.interop.duckdb155 import asked_of_duckdb
from tests.interop.history_model import ID, UID, Version
from tests.interop.history_steps import Story
from tests.interop.plain import plain_rows
from tests.interop.readers import (
    At,
    DeltaQuery,
    Filter,
    PolarsDelta,
    PolarsIceberg,
    PyIceberg,
    Reader,
)

STOCK: dict[str, Reader] = {
    "deltalake QueryBuilder": DeltaQuery(),
    "Polars scan_delta": PolarsDelta(),
    "PyIceberg": PyIceberg(),
    "Polars scan_iceberg": PolarsIceberg(),
}


@dataclass(frozen=True)
class Asked:
    version: Version
    at: At
    format: str


def shown(version: Version) -> dict[int, Any]:
    return plain_rows(version.to_arrow())


def asked(story: Story, most: int) -> list[Asked]:
    """The head of main and some older versions, as far as each format offers them."""
    versions = story.model.main.versions
    files = metadata_files(story.table)
    found = []
    for format_ in ("delta", "iceberg"):
        start = story.model.starts(format_)
        if start is None:
            continue
        offered = [n for n in versions if n >= start]
        for number in {offered[-1], *story.dice.sample(offered, min(most, len(offered)))}:
            path = files.get(versions[number].time_ms)
            assert path is not None or format_ == "delta", number
            at = At(story.table.location, number, None, path)
            found.append(Asked(versions[number], at, format_))
    return found


def metadata_files(table: lakebed.Table) -> dict[int, str]:
    """The newest Iceberg metadata of each moment."""
    found = {}
    for path in sorted(Path(table.location, "metadata").glob("*.metadata.json")):
        found[orjson.loads(path.read_bytes())["last-updated-ms"]] = str(path)
    return found


def check_ours(story: Story, most: int) -> None:
    """Every line's head, and sampled versions of main, by three engines of ours."""
    for name, line in story.model.lines.items():
        head = Version(line.head.rows, story.columns, 0, (), frozenset())
        scan = story.table.scan(ref=name)
        assert plain_rows(scan.to_arrow()) == shown(head), name
        rows = story.lake.sql(f'SELECT * FROM s.t@"{name}"').to_arrow()
        assert plain_rows(rows) == shown(head), name
    assert story.table.row_count == len(story.model.main.head.rows)
    main = story.model.main.versions
    for number in story.dice.sample(sorted(main), min(most, len(main))):
        wanted = main[number]
        scan = story.table.scan(version=number)
        found = scan.to_arrow()
        assert found.schema.names == [c.name for c in wanted.columns], number
        assert [f.type for f in found.schema] == [c.type for c in wanted.columns], number
        assert plain_rows(found) == shown(wanted), number
        rows = story.lake.sql(f"SELECT * FROM s.t VERSION AS OF {number}").to_arrow()
        assert plain_rows(rows) == shown(wanted), number
        assert plain_rows(scan.to_polars().collect().to_arrow()) == shown(wanted), number


def check_stock(questions: list[Asked]) -> Counter[str]:
    """How many versions each reader read; it shows our rows or refuses what the docs list."""
    done: Counter[str] = Counter()
    for question in questions:
        for name, reader in STOCK.items():
            whole = _read(name, reader, question) if reader.format == question.format else None
            if whole is not None:
                done[name] += 1
                assert plain_rows(whole) == shown(question.version), (name, question.at)
                check_matching(name, reader, question, whole)
    return done


def _read(name: str, reader: Reader, question: Asked) -> pa.Table | None:
    try:
        return reader.read(question.at)
    except Exception as error:
        if refusal(name, question.version, str(error)):
            return None
        raise


def check_matching(name: str, reader: Reader, question: Asked, whole: pa.Table) -> None:
    """Pruned by our statistics, or not: the same rows."""
    ids = sorted(row[ID] for row in question.version.rows)
    if ids:
        middle = ids[len(ids) // 2]
        found, told = reader.ids(question.at, Filter("id", ">=", "long", middle), whole)
        assert found == told == [i for i in ids if i >= middle], (name, question.at)


def refusal(reader: str, version: Version, text: str) -> bool:
    allowed = [expected.EVOLVED[f].get(reader) for f in version.features]
    return any(words is not None and words in text for words in allowed)


def check_duckdb(questions: list[Asked]) -> None:
    sources = [
        f"delta_scan('{q.at.location}', version={q.at.version})"
        if q.format == "delta"
        else f"iceberg_scan('{q.at.metadata_path}')"
        for q in questions
    ]
    answers = asked_of_duckdb([f"SELECT * FROM {source}" for source in sources])
    for question, answer in zip(questions, answers, strict=True):
        rows = shown(question.version)
        wanted = {str(k): {n: repr(v) for n, v in row.items()} for k, row in rows.items()}
        assert answer == {"rows": wanted}, question.at


def check_branches(story: Story) -> None:
    """Iceberg's refs; one without a snapshot has no rows."""
    if "iceberg" not in story.model.main.head.formats:
        return
    table = StaticTable.from_metadata(story.table.location)
    for name, line in story.model.lines.items():
        ref = table.metadata.refs.get(name)
        ids = sorted(row[ID] for row in line.head.rows)
        if ref is None:
            continue  # it has no snapshot that Iceberg has seen
        rows = table.scan(snapshot_id=ref.snapshot_id, selected_fields=("id",)).to_arrow()
        assert sorted(rows["id"].to_pylist()) == ids, name


def row_ids(table: lakebed.Table, **point: Any) -> dict[int, int | None]:
    """Of each key, as our reader tells them; from Iceberg v3 on every row has one."""
    plan = table.scan(columns=["id"], **point).plan()
    root = Path(table.location)
    storage = open_storage(str(root.parents[1]))
    batches = read(plan, storage, metadata=("_row_id",))
    found = {row["id"]: row["_row_id"] for batch in batches for row in batch.to_pylist()}
    if all(f.first_row_id is None for f in plan.files):
        return dict.fromkeys(found)  # before v3 a file may know ids that do not count yet
    assert None not in found.values()
    return found


class Lineage:
    """A row keeps its id on its line whatever is done to it, and no other row ever has that id.

    Copies that were made before Iceberg v3, when rows had no ids, are rows of their own.
    """

    def __init__(self) -> None:
        self._owners: dict[int, int] = {}
        self._heads: dict[str, dict[int, int]] = {}

    def check(self, story: Story, step: str) -> None:
        for name, line in story.model.lines.items():
            found = row_ids(story.table, ref=name)
            uids = {row[UID]: found[row[ID]] for row in line.head.rows}
            ids = {uid: row_id for uid, row_id in uids.items() if row_id is not None}
            for uid, row_id in ids.items():
                assert self._owners.setdefault(row_id, uid) == uid, (name, row_id)
            if step not in ("restore", "forward"):
                before = self._heads.get(name, {})
                assert {u: i for u, i in before.items() if u in uids} == {
                    u: ids[u] for u in before if u in ids
                }, (name, step)
            self._heads[name] = ids
