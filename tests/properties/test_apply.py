"""Invariants of `apply` over random runs of commits: counters, ids, sequence numbers, row ids."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from lakebed.core.apply import Effects, apply
from lakebed.model.changes import (
    AppendFiles,
    Change,
    CreateTable,
    Proposal,
    RemoveFiles,
    SetFormats,
    SetProperties,
    TableChanges,
)
from lakebed.model.expressions import TRUE
from lakebed.model.files import DataFile, LiveFile
from lakebed.model.history import TableHead, TableState
from lakebed.model.ids import SchemaId, SpecId, StateId, TableId, Version
from lakebed.model.names import TableName
from lakebed.model.partitioning import UNPARTITIONED, UNSORTED
from lakebed.model.schema import new_schema
from lakebed.model.schema_text import parse_schema

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
# Rows per new file, how many live files go, and what else changes.
STEPS = st.lists(
    st.tuples(
        st.lists(st.integers(1, 5), max_size=3),
        st.integers(0, 3),
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


@settings(deadline=None)
@given(steps=STEPS, v3=st.booleans(), formats=st.sampled_from(FORMATS))
def test_a_run_of_commits_keeps_its_books(
    steps: list[tuple[list[int], int, object]], v3: bool, formats: tuple[str, ...]
) -> None:
    if v3:
        formats = ("iceberg",)
    kind = "timestamp_ns" if v3 else "timestamp"
    head, state = UNBORN, None
    live: dict[int, LiveFile] = {}
    runs: list[Effects] = []
    for number, (counts, gone, other) in enumerate([([2], 0, None), *steps]):
        removed = list(live.values())[:gone]
        changes: list[Change] = [] if state else [create(f"id long, t {kind}", formats)]
        if other == "properties":
            changes.append(SetProperties({"k": str(number)}))
        elif other is not None and not v3:
            changes.append(SetFormats(other))  # type: ignore[arg-type]  # the other choices
        if removed:
            changes.append(RemoveFiles(tuple(f.id for f in removed), TRUE))
        if counts:
            changes.append(new_files(number, counts))
        whole = proposal(number, changes, is_first=state is None)

        effects = apply(whole, whole.tables[0], head, state, removed=removed, time_ms=1000 + number)

        check_step(head, state, live, effects)
        again = apply(whole, whole.tables[0], head, state, removed=removed, time_ms=1000 + number)
        assert again == effects, "the same input gives the same rows"
        live = {i: f for i, f in live.items() if f not in removed}
        live |= {f.id: f for f in effects.added}
        head, state = effects.head, effects.state
        runs.append(effects)
    check_books(head, live, runs)


def check_step(
    head: TableHead, state: TableState | None, live: dict[int, LiveFile], effects: Effects
) -> None:
    assert effects.head.version == head.version + 1 == effects.commit.version
    assert not {f.id for f in effects.added} & set(live)
    assert all(f.added_version == effects.commit.version for f in effects.added)
    assert {f for f, _ in effects.outbox} == set(effects.state.formats)
    if effects.snapshot is None:
        assert not effects.added
        assert not effects.removed
        assert effects.head.last_sequence_number == head.last_sequence_number
        assert effects.head.snapshot_id == head.snapshot_id
    else:
        assert effects.snapshot.parent_id == head.snapshot_id
        assert effects.snapshot.sequence_number == head.last_sequence_number + 1
        assert all(f.snapshot_id == effects.snapshot.id for f in effects.added)
    if state is not None and not effects.state_is_new:
        assert effects.state is state
    if effects.state_is_new and state is not None:
        assert effects.state.id == state.id + 1
        assert replace(effects.state, id=state.id) != state


def check_books(head: TableHead, live: dict[int, LiveFile], runs: list[Effects]) -> None:
    files = [f.file for f in live.values()]
    assert head.live_files == len(files)
    assert head.live_rows == sum(f.record_count for f in files)
    assert head.live_bytes == sum(f.size_bytes for f in files)
    added = [f for effects in runs for f in effects.added]
    assert [f.id for f in added] == list(range(head.next_file_id))
    snapshots = [e.snapshot for e in runs if e.snapshot is not None]
    assert [s.sequence_number for s in snapshots] == list(range(1, len(snapshots) + 1))
    assert len({s.id for s in snapshots}) == len(snapshots)
    if snapshots:
        totals = snapshots[-1].summary
        after = next(e.head for e in reversed(runs) if e.snapshot is not None)
        assert totals["total-records"] == str(after.live_rows)
        assert totals["total-data-files"] == str(after.live_files)
    if any(f.first_row_id is not None for f in added):
        rows = [n for f in added for n in range(f.first_row_id or 0, _end(f))]
        assert rows == list(range(head.next_row_id)), "every row has a number of its own"


def _end(live: LiveFile) -> int:
    assert live.first_row_id is not None
    return live.first_row_id + live.file.record_count
