"""Random histories with branches and restores: every version of every line, and all changes."""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable, QueryBuilder
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyiceberg.table import StaticTable

import lakebed
from tests.examples import examples

Row = tuple[int, int]
Rows = Counter[Row]
STEPS = (
    "append",
    "delete",
    "update",
    "copy",
    "overwrite",
    "restore",
    "branch",
    "forward",
    "column",
)
COPY = {"write.delete.mode": "copy-on-write", "write.update.mode": "copy-on-write"}
SHAPES: tuple[dict[str, Any], ...] = (
    {},
    {"properties": {"lakebed.upgrade": "never"}},
    {"partition_by": ["v"]},
    {"partition_by": ["bucket(3, id)"], "properties": COPY},
)


@dataclass
class Line:
    """What one line should hold: rows by version, and where main has taken it."""

    versions: dict[int, Rows]
    first: int = 0  # as far back as it can be restored
    taken: int = 0
    based_on: int = 0  # main's number of changes of rows when it began or was taken

    @property
    def head(self) -> Rows:
        return self.versions[max(self.versions)]


@dataclass
class Story:
    table: lakebed.Table
    dice: random.Random
    lines: dict[str, Line] = field(default_factory=dict)
    next_id: int = 0
    columns: int = 0
    moves: int = 0  # changes of main's rows
    moves_at: dict[int, int] = field(default_factory=lambda: {0: 0})  # by main's version

    def run(self, steps: list[str]) -> None:
        self.lines["main"] = Line({0: Counter()})
        for step in steps:
            name = self.dice.choice(sorted(self.lines))
            line = self.lines[name]
            made = getattr(self, f"do_{step}")(name, line)
            if made is None:
                continue
            commit, rows = made
            if commit.changed:
                assert commit.version == max(line.versions) + 1
                self.moves += name == "main" and step != "column"
                line.versions[commit.version] = rows
                if name == "main":
                    self.moves_at[commit.version] = self.moves
            else:
                assert rows == line.head

    def do_append(self, name: str, line: Line) -> tuple[lakebed.Commit, Rows]:
        new = [(self.new_id(), self.dice.randrange(3)) for _ in range(self.dice.randrange(1, 6))]
        new += new[: self.dice.randrange(2)]
        rows = [{"id": i, "v": v} for i, v in new]
        return self.table.append(rows, branch=name), line.head + Counter(new)

    def do_delete(self, name: str, line: Line) -> tuple[lakebed.Commit, Rows]:
        value = self.dice.randrange(3)
        kept = Counter({r: n for r, n in line.head.items() if r[0] % 3 != value})
        return self.table.delete(f"id % 3 = {value}", branch=name), kept

    def do_update(self, name: str, line: Line) -> tuple[lakebed.Commit, Rows]:
        rest, part = self.dice.randrange(4), self.dice.choice([0, 1])
        after: Rows = Counter()
        for (i, v), n in line.head.items():
            after[i, v + part if i % 4 == rest else v] += n
        return self.table.update({"v": f"v + {part}"}, f"id % 4 = {rest}", branch=name), after

    def do_copy(self, name: str, line: Line) -> tuple[lakebed.Commit, Rows]:
        few = [i for i, _ in line.head][:2] or [0]
        listed = ", ".join(map(str, few))
        commit = self.table.delete(f"id IN ({listed})", branch=name, settings=COPY)
        return commit, Counter({r: n for r, n in line.head.items() if r[0] not in few})

    def do_overwrite(self, name: str, line: Line) -> tuple[lakebed.Commit, Rows]:
        rows = Counter({r: n for r, n in line.head.items() if self.dice.random() < 0.8})
        given = [{"id": i, "v": v} for i, v in rows.elements()]
        return self.table.overwrite(given, branch=name), rows

    def do_restore(self, name: str, line: Line) -> tuple[lakebed.Commit, Rows]:
        version = self.dice.choice([v for v in line.versions if v >= line.first])
        return self.table.restore(version=version, branch=name), line.versions[version]

    def do_branch(self, name: str, line: Line) -> None:
        version = self.dice.choice(sorted(line.versions))
        made = f"b{len(self.lines)}"
        self.table.create_branch(made, version=version, ref=name)
        upto = {v: rows for v, rows in line.versions.items() if v <= version}
        based_on = self.moves_at[version] if name == "main" else -1
        self.lines[made] = Line(upto, version, version, based_on)

    def do_forward(self, name: str, _: Line) -> None:
        branches = [n for n in self.lines if n != "main"]
        if not branches:
            return
        chosen = self.dice.choice(branches)
        line, main = self.lines[chosen], self.lines["main"]
        if line.based_on != self.moves or line.taken == max(line.versions):
            with pytest.raises(lakebed.CommitError):
                self.table.fast_forward("main", to=chosen)
            return
        commit = self.table.fast_forward("main", to=chosen)
        self.moves += 1
        main.versions[commit.version] = line.head
        self.moves_at[commit.version] = self.moves
        line.taken, line.based_on = max(line.versions), self.moves

    def do_column(self, name: str, line: Line) -> tuple[lakebed.Commit, Rows] | None:
        if name != "main":
            return None
        self.columns += 1
        return self.table.alter().add_column(f"c{self.columns}", "int").commit(), line.head

    def new_id(self) -> int:
        self.next_id += 1
        return self.next_id

    def check(self) -> None:
        """Each version of each line, and the changes between some of them."""
        for name, line in self.lines.items():
            for version, rows in line.versions.items():
                assert self.read(ref=name, version=version) == rows, (name, version)
            assert self.read(ref=name) == line.head
            known = sorted(line.versions)
            for _ in range(3):
                first, last = sorted(self.dice.choices(known, k=2))
                self.check_changes(name, line, first, last)
            self.check_changes(name, line, -1, known[-1])

    def read(self, **point: Any) -> Rows:
        return counted(self.table.scan(**point, columns=["id", "v"]).to_arrow().to_pylist())

    def check_changes(self, name: str, line: Line, first: int, last: int) -> None:
        begin = None if first < 0 else first
        feed = self.table.changes(
            from_version=begin, to_version=last, ref=name, columns=["id", "v"]
        )
        rows = Counter(line.versions[first]) if first >= 0 else Counter()
        version, pending = first, None
        for change in feed.to_arrow().to_pylist():
            row = (change["id"], change["v"])
            if change["_version"] != version:
                self.check_between(line, version, change["_version"], rows)
                version = change["_version"]
            if change["_op"] in ("delete", "update_before"):
                assert rows[row] > 0, (name, change)
                rows[row] -= 1
            else:
                rows[row] += 1
            if change["_op"] == "update_before":
                pending = row
            elif change["_op"] == "update_after":
                assert pending is not None
                assert pending[0] == row[0]
                assert pending != row
        assert +rows == line.versions[last], (name, first, last)

    def check_between(self, line: Line, done: int, begun: int, rows: Rows) -> None:
        """Versions without a change show the rows of the one before."""
        for version in range(max(done, 0), begun):
            if version in line.versions:
                assert +rows == line.versions[version]


def counted(rows: list[dict[str, Any]]) -> Rows:
    return Counter((row["id"], row["v"]) for row in rows)


def tell(lake: lakebed.Lake, steps: list[str], seed: int) -> Iterator[Story]:
    dice = random.Random(seed)
    shape = dice.choice(SHAPES)
    story = Story(lake.create_table("s.t", "id long not null, v long", **shape), dice)
    story.run(["append", *steps])
    story.check()
    yield story


bounded = settings(deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)
histories = st.lists(st.sampled_from(STEPS), min_size=3, max_size=14)
seeds = st.integers(0, 2**32)


@settings(bounded, max_examples=15)
@given(steps=histories, seed=seeds)
def test_every_version_of_every_line_is_what_was_written(steps: list[str], seed: int) -> None:
    with lakebed.open(":memory:") as lake:
        for _ in tell(lake, steps, seed):
            assert lake.check().findings == []


@pytest.mark.slow
@settings(bounded, max_examples=examples(50, 150))
@given(steps=histories, seed=seeds)
def test_long_histories(steps: list[str], seed: int) -> None:
    with lakebed.open(":memory:") as lake:
        for _ in tell(lake, steps + steps, seed):
            assert lake.check().findings == []


@settings(bounded, max_examples=6)
@given(steps=histories, seed=seeds)
def test_other_readers_see_main_and_branches(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str], seed: int
) -> None:
    folder = tmp_path_factory.mktemp("time")
    with lakebed.open(folder, create=True) as lake:
        for story in tell(lake, steps, seed):
            assert lake.publish().lags == ()
            check_delta(story)
            check_iceberg(story)
            assert lake.check().findings == []


def check_delta(story: Story) -> None:
    """Delta shows main, and every version of it."""
    main = story.lines["main"].versions
    location = Path(story.table.location)
    assert DeltaTable(location).version() == max(main)
    for version in {max(main), story.dice.choice(sorted(main))}:
        opened = DeltaTable(location, version=version)
        query = QueryBuilder().register("t", opened).execute("SELECT id, v FROM t")
        rows = [dict(zip(("id", "v"), r, strict=True)) for r in _tuples(query.read_all())]
        assert counted(rows) == main[version]


def _tuples(table: Any) -> Iterator[tuple[int, int]]:
    yield from zip(table["id"].to_pylist(), table["v"].to_pylist(), strict=True)


def check_iceberg(story: Story) -> None:
    """Iceberg shows every branch; one without a snapshot has no rows."""
    table = StaticTable.from_metadata(story.table.location)
    shown = table.metadata.refs
    for name, line in story.lines.items():
        if name not in shown:
            assert not line.head
            continue
        rows = table.scan(snapshot_id=shown[name].snapshot_id).to_arrow().to_pylist()
        assert counted(rows) == line.head, name
