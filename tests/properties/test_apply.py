"""Invariants of `apply` over random runs of commits: counters, ids, sequence numbers, row ids."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from lakebed.core.apply import Effects, Found, apply
from lakebed.core.state import created, next_state, upgrades
from lakebed.model.changes import (
    AppendFiles,
    Change,
    CreateTable,
    DeleteRows,
    Proposal,
    RemoveFiles,
    SetFormats,
    SetProperties,
    TableChanges,
)
from lakebed.model.expressions import TRUE
from lakebed.model.files import DataFile, LiveFile
from lakebed.model.history import TableHead, TableState
from lakebed.model.ids import FileId, SchemaId, SpecId, StateId, TableId, Version
from lakebed.model.names import TableName
from lakebed.model.partitioning import UNPARTITIONED, UNSORTED
from lakebed.model.schema import new_schema
from lakebed.model.schema_text import parse_schema
from lakebed.model.vectors import Positions

NAME = TableName(("a",), "t")
UNBORN = TableHead(
    TableId(1),
    "0b1e3a0e-6d2c-4a39-9d4f-3f7f8f1f5a11",
    NAME,
    "a/t",
    "managed",
    0,
    Version(-1),
    0,
    StateId(-1),
    None,
    0,
    0,
    0,
    0,
    0,
    0,
)
FORMATS = (("delta",), ("iceberg",), ("delta", "iceberg"))
# Rows per new file, how many live files go, how many rows the next one loses, what else changes.
STEPS = st.lists(
    st.tuples(
        st.lists(st.integers(1, 5), max_size=3),
        st.integers(0, 3),
        st.integers(0, 2),
        st.sampled_from([None, None, "properties", *FORMATS]),
    ),
    max_size=8,
)


def create(schema_text: str, formats: tuple[str, ...]) -> CreateTable:
    schema = new_schema(parse_schema(schema_text))
    return CreateTable(NAME, UNBORN.uuid, "a/t", schema, UNPARTITIONED, UNSORTED, {}, formats)


def proposal(number: int, changes: list[Change], *, is_first: bool) -> Proposal:
    base = None if is_first else Version(number - 1)
    ours = TableChanges(None if is_first else TableId(1), base, "change", tuple(changes))
    return Proposal(f"transaction-{number}", "me", None, "write_serializable", (ours,))


def new_files(number: int, counts: list[int]) -> AppendFiles:
    made = [
        DataFile(f"data/{number}-{n}.parquet", 100 + count, count, SpecId(0), (), {})
        for n, count in enumerate(counts)
    ]
    return AppendFiles(tuple(made), SchemaId(0))


class Rows:
    """The rows of a store, as far as `apply` is told of them."""

    def __init__(self) -> None:
        self.live: dict[FileId, LiveFile] = {}
        self.gone: dict[FileId, Positions] = {}  # of live files
        self.files: dict[FileId, LiveFile] = {}  # all there ever were

    def found(self, changes: list[Change], before: TableState | None) -> Found:
        state = next_state(before, changes) if before else created(changes)
        removed = {i for c in changes if isinstance(c, RemoveFiles) for i in c.file_ids}
        losing = {i for c in changes if isinstance(c, DeleteRows) for i in c.positions}
        unnumbered = [f for f in self.files.values() if f.first_row_id is None]
        return Found(
            state,
            [self.live[i] for i in removed],
            losing={i: (self.live[i], self.gone.get(i, Positions())) for i in losing},
            unnumbered=sum(f.file.record_count for f in unnumbered)
            if upgrades(before, state)
            else 0,
        )

    def take(self, effects: Effects) -> None:
        for f in effects.closed:
            del self.live[f.id]
        if effects.numbers_rows:
            assert effects.snapshot is not None
            row_id = effects.snapshot.first_row_id or 0
            for i, f in self.files.items():
                if f.first_row_id is None:
                    self.files[i] = replace(f, first_row_id=row_id)
                    row_id += f.file.record_count
                    if i in self.live:
                        self.live[i] = replace(
                            self.live[i], first_row_id=self.files[i].first_row_id
                        )
        self.files |= {f.id: f for f in effects.files}
        self.live |= {
            f.id: replace(f, first_row_id=self.files[f.id].first_row_id) for f in effects.opened
        }
        self.gone |= {i: Positions.from_bytes(bitmap) for _, i, bitmap in effects.vectors}


def loses(rows: Rows, removed: set[FileId], count: int) -> DeleteRows | None:
    """The first rows that are still there, of the first file that stays."""
    stays = next((f for i, f in rows.live.items() if i not in removed), None)
    if stays is None or not count:
        return None
    gone = rows.gone.get(stays.id, Positions())
    left = [n for n in range(stays.file.record_count) if n not in gone]
    return DeleteRows({stays.id: Positions(left[:count])}, TRUE)


@settings(deadline=None)
@given(steps=STEPS, v3=st.booleans(), formats=st.sampled_from(FORMATS))
def test_a_run_of_commits_keeps_its_books(
    steps: list[tuple[list[int], int, int, object]], v3: bool, formats: tuple[str, ...]
) -> None:
    if v3:
        formats = ("iceberg",)
    kind = "timestamp_ns" if v3 else "timestamp"
    head, state = UNBORN, None
    rows = Rows()
    runs: list[Effects] = []
    for number, (counts, gone, lost, other) in enumerate([([2], 0, 0, None), *steps]):
        removed = set(list(rows.live)[:gone])
        changes: list[Change] = [] if state else [create(f"id long, t {kind}", formats)]
        if other == "properties":
            changes.append(SetProperties({"k": str(number)}))
        elif other is not None and not v3:
            changes.append(SetFormats(other))  # type: ignore[arg-type]  # the other choices
        if removed:
            changes.append(RemoveFiles(tuple(removed), TRUE))
        if (deletes := loses(rows, removed, lost)) is not None:
            changes.append(deletes)
        if counts:
            changes.append(new_files(number, counts))
        whole = proposal(number, changes, is_first=state is None)
        found = rows.found(changes, state)

        effects = apply(whole, whole.tables[0], head, state, found=found, time_ms=1000 + number)

        check_step(head, state, rows.live, effects)
        again = apply(whole, whole.tables[0], head, state, found=found, time_ms=1000 + number)
        assert again == effects, "the same input gives the same rows"
        rows.take(effects)
        head, state = effects.head, effects.state
        runs.append(effects)
    check_books(head, rows, runs)


def check_step(
    head: TableHead, state: TableState | None, live: dict[FileId, LiveFile], effects: Effects
) -> None:
    assert effects.head.version == head.version + 1 == effects.commit.version
    assert not {f.id for f in effects.files} & set(live)
    assert {f.id for f in effects.closed} <= set(live)
    assert all(f.added_version == effects.commit.version for f in effects.opened)
    assert all(0 < f.rows <= f.file.record_count for f in effects.opened)
    assert {f for f, _ in effects.outbox} == set(effects.state.formats)
    assert effects.commit.snapshot_id == effects.head.snapshot_id
    if effects.snapshot is None:
        assert not effects.opened
        assert not effects.closed
        assert effects.head.last_sequence_number == head.last_sequence_number
        assert effects.head.snapshot_id == head.snapshot_id
    else:
        assert effects.snapshot.parent_id == head.snapshot_id
        assert effects.snapshot.sequence_number == head.last_sequence_number + 1
        assert all(f.snapshot_id == effects.snapshot.id for f in effects.files)
        assert all(v.snapshot_id == effects.snapshot.id for v, _, _ in effects.vectors)
    if state is not None and not effects.state_is_new:
        assert effects.state is state
    if effects.state_is_new and state is not None:
        assert effects.state.id == state.id + 1
        assert replace(effects.state, id=state.id) != state


def check_books(head: TableHead, rows: Rows, runs: list[Effects]) -> None:
    live = list(rows.live.values())
    files = [f.file for f in live]
    assert head.live_files == len(files)
    assert head.live_rows == sum(f.rows for f in live)
    assert head.live_bytes == sum(f.size_bytes for f in files)
    assert head.live_vectors == len([f for f in live if f.vector])
    assert head.live_deletes == sum(f.vector.cardinality for f in live if f.vector)
    assert list(rows.files) == list(range(head.next_file_id))
    assert sum(len(e.vectors) for e in runs) == head.next_vector_id
    snapshots = [e.snapshot for e in runs if e.snapshot is not None]
    assert [s.sequence_number for s in snapshots] == list(range(1, len(snapshots) + 1))
    assert len({s.id for s in snapshots}) == len(snapshots)
    if snapshots:
        totals = snapshots[-1].summary
        after = next(e.head for e in reversed(runs) if e.snapshot is not None)
        assert totals["total-records"] == str(after.live_rows + after.live_deletes)
        assert totals["total-data-files"] == str(after.live_files)
        assert totals["total-delete-files"] == str(after.live_vectors)
        assert totals["total-position-deletes"] == str(after.live_deletes)
    if runs[-1].state.iceberg_version >= 3:
        ids = [n for f in rows.files.values() for n in range(f.first_row_id or 0, _end(f))]
        assert sorted(ids) == list(range(head.next_row_id)), "every row has a number of its own"


def _end(live: LiveFile) -> int:
    assert live.first_row_id is not None
    return live.first_row_id + live.file.record_count
