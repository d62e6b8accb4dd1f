"""What `find_clash` lets pass equals a serial order of the writes, found by brute force."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from lakebed.core.conflict import Since, find_clash
from lakebed.core.state import first_state
from lakebed.model.binding import bind
from lakebed.model.changes import AppendFiles, Change, CreateTable, RemoveFiles, TableChanges
from lakebed.model.expressions import TRUE, Predicate
from lakebed.model.files import DataFile
from lakebed.model.ids import FileId, SchemaId, TableId, Version
from lakebed.model.names import TableName
from lakebed.model.partitioning import UNSORTED, parse_spec
from lakebed.model.schema import new_schema
from lakebed.model.schema_text import parse_schema
from lakebed.sql.predicate import parse_predicate

SCHEMA = new_schema(parse_schema("id long not null, p string"))
SPEC = parse_spec(("p",), SCHEMA)
STATE = first_state(
    CreateTable(TableName(("a",), "t"), "u", "a/t", SCHEMA, SPEC, UNSORTED, {}, ("iceberg",))
)
PARTS = (None, "a", "b")
Rows = dict[int, str | None]  # one row per file: id -> partition value


@dataclass(frozen=True)
class Write:
    """Rows to add, and whose place they take: nobody's, everybody's, or some partitions'."""

    kind: str
    parts: tuple[str | None, ...]
    first_id: int

    @property
    def new(self) -> Rows:
        return {self.first_id + n: part for n, part in enumerate(self.parts)}

    @property
    def blind(self) -> bool:
        return self.kind == "append"

    @property
    def value(self) -> str | None:
        return self.parts[0] if self.parts else "a"

    def removes(self, rows: Rows) -> Rows:
        match self.kind:
            case "append":
                return {}
            case "overwrite":
                return rows
            case "partitions":
                return {i: p for i, p in rows.items() if p in self.parts}
            case _:
                return {i: p for i, p in rows.items() if p == self.value}

    def after(self, rows: Rows) -> Rows:
        gone = self.removes(rows)
        return {**{i: p for i, p in rows.items() if i not in gone}, **self.new}

    @property
    def reads(self) -> Predicate:
        if self.kind != "where":
            return TRUE
        text = "p IS NULL" if self.value is None else f"p = '{self.value}'"
        return bind(parse_predicate(text), SCHEMA)


@st.composite
def writes(draw: st.DrawFn, first_id: int) -> Write:
    kind = draw(st.sampled_from(["append", "overwrite", "partitions", "where"]))
    parts = draw(st.lists(st.sampled_from(PARTS), max_size=2))
    if kind == "where" and parts:
        parts = [parts[0]] * len(parts)
    return Write(kind, tuple(parts), first_id)


def files(rows: Rows) -> tuple[DataFile, ...]:
    return tuple(DataFile(f"data/{i}", 10, 1, SPEC.id, (part,), {}) for i, part in rows.items())


def proposed(ours: Write, base: Rows) -> TableChanges:
    changes: list[Change] = [AppendFiles(files(ours.new), SchemaId(0))]
    if not ours.blind:
        removed = tuple(FileId(i) for i in ours.removes(base))
        changes.insert(0, RemoveFiles(removed, ours.reads))
    return TableChanges(TableId(1), Version(0), ours.kind, tuple(changes))


def played(base: Rows, theirs: Sequence[Write]) -> tuple[Rows, list[Since]]:
    since, rows = [], base
    for number, write in enumerate(theirs):
        gone = frozenset(FileId(i) for i in write.removes(rows))
        since.append(Since(Version(number + 1), False, write.blind, files(write.new), gone))
        rows = write.after(rows)
    return rows, since


def serial_orders(ours: Write, theirs: Sequence[Write], *, may_pass: bool) -> Iterator[list[Write]]:
    """Ours last; or, where the isolation allows it, before blind appends it did not see."""
    passed = [n for n, write in enumerate(theirs) if write.blind] if may_pass else []
    for count in range(len(passed) + 1):
        for late in combinations(passed, count):
            early = [write for n, write in enumerate(theirs) if n not in late]
            yield [*early, ours, *(theirs[n] for n in late)]


@settings(max_examples=400, deadline=None)
@given(
    base=st.lists(st.sampled_from(PARTS), max_size=4),
    ours=writes(100),
    theirs=st.tuples(writes(200), writes(300), writes(400)).flatmap(
        lambda three: st.integers(0, 3).map(lambda n: three[:n])
    ),
    serializable=st.booleans(),
)
def test_what_passes_equals_a_serial_order(
    base: list[str | None], ours: Write, theirs: tuple[Write, ...], serializable: bool
) -> None:
    before = dict(enumerate(base))
    head, since = played(before, theirs)

    clash = find_clash(
        proposed(ours, before),
        since,
        STATE,
        schemas={SchemaId(0): SCHEMA},
        specs={SPEC.id: SPEC},
        serializable=serializable,
        deleted={},
    )

    if clash is not None:
        assert 1 <= clash.with_version <= len(theirs)
        return
    gone = ours.removes(before)
    rebased = {**{i: p for i, p in head.items() if i not in gone}, **ours.new}
    assert set(gone) <= set(head), "it removes files that are gone"
    results = []
    for order in serial_orders(ours, theirs, may_pass=not serializable):
        rows = before
        for write in order:
            rows = write.after(rows)
        results.append(rows)
    assert rebased in results


@given(base=st.lists(st.sampled_from(PARTS), max_size=4), ours=writes(100), other=writes(200))
def test_appends_and_lone_writers_never_clash(
    base: list[str | None], ours: Write, other: Write
) -> None:
    before = dict(enumerate(base))

    def clash(write: Write, since: list[Since]) -> object:
        return find_clash(
            proposed(write, before),
            since,
            STATE,
            schemas={SchemaId(0): SCHEMA},
            specs={SPEC.id: SPEC},
            serializable=True,
            deleted={},
        )

    assert clash(ours, []) is None
    assert clash(Write("append", ours.parts, 100), played(before, [other])[1]) is None
