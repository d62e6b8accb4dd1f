"""Steps of a random history, each done to a real table and to the model of it."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import lakebed
from tests.interop.history_model import (
    ID,
    SCHEMA,
    START,
    TYPES,
    UID,
    VALUES,
    WIDER,
    Column,
    Condition,
    Line,
    Model,
    Rows,
    Values,
    Version,
    changed,
    drawn,
    literal,
    quoted,
    swapped,
    to_arrow,
    without,
)

MAPPED, WIDENED = "column mapping", "type widening"
FORMATS = (("delta", "iceberg"), ("delta", "iceberg"), ("delta",), ("iceberg",))
MODES = ("merge-on-read", "copy-on-write")
ROWS = ("append", "append", "delete", "update", "merge", "upsert", "apply", "overwrite", "replace")
LINES = ("branch", "branch", "forward", "restore", "transaction")
TABLE = ("add", "move", "optional", "default", "partition", "formats", "checkpoint")
NAMES = {MAPPED: ("rename", "swap", "drop", "member"), WIDENED: ("widen",)}
PARTITIONS: tuple[list[str], ...] = (
    [],
    ["p"],
    ["bucket(3, id)"],
    ["truncate(1, p)", "bucket(2, id)"],
    ["n"],
)
Refused = (lakebed.InvalidInput, lakebed.NoChanges)
Done = tuple[lakebed.Commit, Version] | None


@dataclass
class Story:
    """A table, what it should be, and what is rolled to decide what happens next."""

    lake: lakebed.Lake
    table: lakebed.Table
    dice: Random
    model: Model = field(default_factory=Model)

    def run(self, steps: list[str]) -> None:
        for step in steps:
            name = self.dice.choice(["main", "main", *self.model.lines])
            do: Callable[[str, Line], Done] = getattr(self, f"do_{step}")
            before = self.table.version
            try:
                done = do(name, self.model.lines[name])
            except Refused:
                assert step in TABLE or step in LINES or step in sum(NAMES.values(), ()), step
                assert self.table.version == before
                continue
            if done is not None:
                self.note(name, *done)

    def note(self, name: str, commit: lakebed.Commit, version: Version) -> None:
        line = self.model.lines[name]
        if not commit.changed:
            assert _ids(version.rows) == _ids(line.head.rows)
            return
        assert commit.version == max(line.versions) + 1
        self.model.moves += name == "main" and version.rows != line.head.rows
        features = self.model.features
        line.versions[commit.version] = replace(version, time_ms=commit.time_ms, features=features)

    @property
    def columns(self) -> tuple[Column, ...]:
        """They are the table's, whatever line is looked at."""
        return self.model.main.head.columns

    def options(self, name: str) -> dict[str, Any]:
        mode = self.dice.choice(MODES)
        settings = {f"write.{kind}.mode": mode for kind in ("delete", "update", "merge")}
        publish = self.dice.choice(["commit", "commit", "background"])
        return {"branch": name, "settings": settings, "publish": publish}

    def fresh(self, most: int) -> Rows:
        count = self.dice.randrange(1, most)
        return tuple(self.model.fresh(self.dice, self.columns) for _ in range(count))

    def sources(self, line: Line) -> Rows:
        """Rows of which some have the keys of rows that are there."""
        there = [row[ID] for row in line.head.rows]
        known = self.dice.sample(there, min(len(there), self.dice.randrange(5)))
        replaced = [self.model.fresh(self.dice, self.columns, key) for key in known]
        return (*replaced, *self.fresh(4))

    def given(self, rows: Rows) -> Any:
        return to_arrow(rows, self.columns)

    def after(self, line: Line, rows: Rows) -> Version:
        return replace(line.head, rows=rows, columns=self.columns)

    # Rows.

    def do_append(self, name: str, line: Line) -> Done:
        new = self.fresh(6)
        commit = self.table.append(self.given(new), **self.options(name))
        return commit, self.after(line, line.head.rows + new)

    def do_delete(self, name: str, line: Line) -> Done:
        where = drawn(self.dice, self.columns)
        commit = self.table.delete(where.sql, **self.options(name))
        return commit, self.after(line, without(line.head.rows, where))

    def do_update(self, name: str, line: Line) -> Done:
        where = drawn(self.dice, self.columns)
        text, new = self.assigned()
        commit = self.table.update(text, where.sql, **self.options(name))
        return commit, self.after(line, changed(line.head.rows, where, new))

    def assigned(self) -> tuple[dict[str, str], Callable[[Values], Values]]:
        """A new value for some column: of its own, or another column's."""
        plain = [c for c in self.columns if c.key != ID and not c.members]
        column = self.dice.choice(plain)
        alike = [c for c in plain if c.kind == column.kind and c != column and not c.required]
        if alike and not column.required and self.dice.random() < 0.5:
            other = self.dice.choice(alike)
            return (
                {column.name: quoted(other.name)},
                lambda row: {column.key: row.get(other.key, other.before)},
            )
        value = column.draw(self.dice)
        return {column.name: literal(column.kind, value)}, lambda row: {column.key: value}

    def do_merge(self, name: str, line: Line) -> Done:
        source = self.sources(line)
        by_key = {row[ID]: row for row in source}
        whole = self.dice.random() < 0.5
        text, new = self.assigned()
        merge = self.table.merge(self.given(source), "t.id = s.id")
        merge = merge.when_matched_delete("t.id % 5 = 0")
        if whole:
            merge = merge.when_matched_update_all()
        else:
            merge = merge.when_matched_update(
                {n: f"t.{v}" if v[0] == '"' else v for n, v in text.items()}
            )
        merge = merge.when_not_matched_insert_all("s.id % 3 <> 0")
        merge = merge.when_not_matched_by_source_delete("t.id % 7 = 0")
        kept = []
        for row in line.head.rows:
            theirs = by_key.pop(row[ID], None)
            if theirs is None and row[ID] % 7 != 0:
                kept.append(row)
            elif theirs is not None and row[ID] % 5 != 0:
                kept.append({**theirs, UID: row[UID]} if whole else {**row, **new(row)})
        inserted = [row for row in by_key.values() if row[ID] % 3 != 0]
        return merge.execute(**self.options(name)), self.after(line, (*kept, *inserted))

    def do_upsert(self, name: str, line: Line) -> Done:
        source = self.sources(line)
        commit = self.table.upsert(self.given(source), **self.options(name))
        return commit, self.after(line, _replaced(line.head.rows, source))

    def do_apply(self, name: str, line: Line) -> Done:
        """A change stream: keys that 3 divides are deleted, the others are what they are told."""
        source = self.sources(line)
        ops = ["D" if row[ID] % 3 == 0 else self.dice.choice("IU") for row in source]
        given = self.given(source).append_column("_op", [ops])
        commit = self.table.apply_changes(given, key="id", **self.options(name))
        gone = Condition("", lambda row: row[ID] % 3 == 0 and row[ID] in {s[ID] for s in source})
        kept = without(line.head.rows, gone)
        staying = tuple(row for row in source if row[ID] % 3 != 0)
        return commit, self.after(line, _replaced(kept, staying))

    def do_overwrite(self, name: str, line: Line) -> Done:
        where = drawn(self.dice, self.columns)
        new = tuple(row for row in self.fresh(5) if where.holds(row))
        commit = self.table.overwrite(self.given(new), where=where.sql, **self.options(name))
        return commit, self.after(line, without(line.head.rows, where) + new)

    def do_replace(self, name: str, line: Line) -> Done:
        new = self.fresh(9)
        return self.table.overwrite(self.given(new), **self.options(name)), self.after(line, new)

    # Versions and lines.

    def do_restore(self, name: str, line: Line) -> Done:
        number = self.dice.choice([v for v in line.versions if v >= line.first])
        then = line.versions[number]
        if name != "main":
            return self.table.restore(version=number, branch=name), self.after(line, then.rows)
        if {c.key for c in then.columns} != {c.key for c in self.columns}:
            # Rows of branches may have been written without the columns that come back.
            for branch in [b for b in self.model.lines if b != "main"]:
                self.do_leave(branch)
        commit = self.table.restore(version=number)
        return commit, replace(line.head, rows=then.rows, columns=then.columns)

    def do_leave(self, branch: str) -> None:
        self.table.drop_branch(branch)
        del self.model.lines[branch]

    def do_branch(self, name: str, line: Line) -> Done:
        branches = len(self.model.lines)
        if branches > 3:
            return None
        made = f"b{self.model.numbers.column()}"
        self.table.create_branch(made, ref=name)
        version = max(line.versions)
        based_on = self.model.moves if name == "main" else -1
        self.model.lines[made] = Line({version: line.head}, version, version, based_on)
        return None

    def do_forward(self, name: str, line: Line) -> Done:
        branches = [n for n in self.model.lines if n != "main"]
        if not branches:
            return None
        chosen = self.dice.choice(branches)
        line = self.model.lines[chosen]
        may = line.based_on == self.model.moves and line.taken != max(line.versions)
        try:
            commit = self.table.fast_forward("main", to=chosen)
        except lakebed.CommitError:
            assert not may
            return None
        assert may
        self.note("main", commit, self.after(self.model.main, line.head.rows))
        line.taken, line.based_on = max(line.versions), self.model.moves
        return None

    def do_transaction(self, name: str, line: Line) -> Done:
        """Two or three changes of rows in one commit, or in none."""
        tx = self.lake.transaction(branch=name)
        staged = tx.table("s.t")
        rows = line.head.rows
        for _ in range(self.dice.randrange(2, 4)):
            where, new = drawn(self.dice, self.columns), self.fresh(3)
            match self.dice.choice(["append", "delete", "update"]):
                case "append":
                    staged.append(self.given(new))
                    rows += new
                case "delete":
                    staged.delete(where.sql)
                    rows = without(rows, where)
                case _:
                    text, assign = self.assigned()
                    staged.update(text, where.sql)
                    rows = changed(rows, where, assign)
            seen = staged.scan().to_arrow()
            assert sorted(seen["id"].to_pylist()) == _ids(rows)
        if self.dice.random() < 0.3:
            tx.rollback()
            return None
        with suppress(lakebed.NoChanges):  # no row was met
            return next(iter(tx.commit().values())), self.after(line, rows)
        return None

    # The table itself: always main.

    def alter(self, alter: Any, columns: tuple[Column, ...]) -> None:
        commit = alter.commit()
        main = self.model.main
        self.note("main", commit, replace(main.head, columns=columns))

    def some(self, *kinds: str) -> Column | None:
        """A column that nothing depends on, of one of the kinds."""
        free = [c for c in self.columns if c.key > 3 and (not kinds or c.kind in kinds)]
        return self.dice.choice(free) if free else None

    def new_name(self) -> str:
        self.model.numbers.names += 1
        return f"c{self.model.numbers.names}"

    def do_add(self, *_: object) -> None:
        kind = self.dice.choice(list(TYPES))
        before = None
        if self.model.main.head.formats == ("iceberg",) and kind in ("int", "string"):
            before = self.dice.choice(VALUES[kind])
        made = Column(
            self.model.numbers.column(), self.new_name(), kind, before=before, default=before
        )
        first = self.dice.random() < 0.5
        columns = (made, *self.columns) if first else (*self.columns, made)
        alter = self.table.alter().add_column(made.name, kind, default=before, first=first)
        self.alter(alter, columns)

    def do_move(self, *_: object) -> None:
        column = self.dice.choice(self.columns)
        rest = tuple(c for c in self.columns if c != column)
        self.alter(self.table.alter().move_column(column.name, first=True), (column, *rest))

    def do_optional(self, *_: object) -> None:
        columns = tuple(replace(c, required=c.required and c.key != 3) for c in self.columns)
        (column,) = [c for c in self.columns if c.key == 3]
        self.alter(self.table.alter().make_optional(column.name), columns)

    def do_default(self, *_: object) -> Done:
        """For rows that leave the column out, as the rows of this append do."""
        column = self.some("int", "string")
        if column is None:
            return None
        value = self.dice.choice(VALUES[column.kind])
        columns = tuple(replace(c, default=value) if c == column else c for c in self.columns)
        self.alter(self.table.alter().set_default(column.name, value), columns)
        main = self.model.main
        new = tuple({**row, column.key: value} for row in self.fresh(3))
        given = self.given(new).drop_columns([column.name])
        return self._on_main(self.table.append(given), main.head.rows + new)

    def _on_main(self, commit: lakebed.Commit, rows: Rows) -> Done:
        self.note("main", commit, self.after(self.model.main, rows))
        return None

    def do_rename(self, *_: object) -> None:
        column = self.dice.choice([c for c in self.columns if c.key != ID])
        name = self.dice.choice([self.new_name(), "a b", "ž"])
        columns = tuple(replace(c, name=name) if c == column else c for c in self.columns)
        alter = self.table.alter().rename_column((column.name,), name)
        self.mapped(alter, columns)

    def mapped(self, alter: Any, columns: tuple[Column, ...]) -> None:
        known, self.model.features = self.model.features, self.model.features | {MAPPED}
        try:
            self.alter(alter, columns)
        except Refused:
            self.model.features = known
            raise

    def do_swap(self, *_: object) -> None:
        one, other = self.dice.sample([c for c in self.columns if c.key != ID], 2)
        alter = self.table.alter().rename_column((one.name,), "tmp")
        alter.rename_column((other.name,), one.name).rename_column(("tmp",), other.name)
        self.mapped(alter, swapped(self.columns, one, other))

    def do_drop(self, *_: object) -> None:
        """Sometimes with another of the same name in its place."""
        column = self.some()
        if column is None or column.kind == "struct":
            return
        columns = tuple(c for c in self.columns if c != column)
        alter = self.table.alter().drop_column((column.name,))
        if self.dice.random() < 0.5:
            kind = self.dice.choice(list(TYPES))
            columns += (Column(self.model.numbers.column(), column.name, kind),)
            alter.add_column((column.name,), kind)
        self.mapped(alter, columns)

    def do_member(self, *_: object) -> None:
        """A member of the struct gets another name, and a new one the old name."""
        (struct,) = [c for c in self.columns if c.members]
        old = self.dice.choice(struct.members)
        name = self.new_name()
        added = Column(self.model.numbers.column(), old.name, "date")
        members = tuple(replace(m, name=name) if m == old else m for m in struct.members)
        columns = tuple(
            replace(c, members=(*members, added)) if c == struct else c for c in self.columns
        )
        alter = self.table.alter().rename_column((struct.name, old.name), name)
        self.mapped(alter.add_column((struct.name, old.name), "date"), columns)

    def do_widen(self, *_: object) -> None:
        narrow = [c for c in self.columns if c.kind in WIDER]
        if not narrow:
            return
        column = self.dice.choice(narrow)
        kind = WIDER[column.kind]
        columns = tuple(replace(c, kind=kind) if c == column else c for c in self.columns)
        alter = self.table.alter().widen_column((column.name,), kind)
        known, self.model.features = self.model.features, self.model.features | {WIDENED}
        try:
            self.alter(alter, columns)
        except Refused:
            self.model.features = known
            raise

    def do_partition(self, *_: object) -> None:
        names = {c.key: c.name for c in self.columns}
        terms = self.dice.choice(PARTITIONS)
        if (names[1], names[2]) != ("p", "n"):
            terms = [t for t in terms if "p" not in t and t != "n"]
        self.alter(self.table.alter().set_partitioning(terms), self.columns)

    def do_formats(self, *_: object) -> None:
        formats = self.dice.choice(FORMATS)
        main = self.model.main
        commit = self.table.set_formats(list(formats))
        self.note("main", commit, replace(main.head, formats=formats))

    def do_checkpoint(self, *_: object) -> None:
        main = self.model.main
        every = str(self.dice.choice([1, 3]))
        properties = {"publish.delta.checkpoint-interval": every}
        self.note("main", self.table.set_properties(properties), main.head)


def _ids(rows: Rows) -> list[int]:
    return sorted(row[ID] for row in rows)


def _replaced(rows: Rows, source: Rows) -> Rows:
    """Rows that are there stay the same rows, with other values."""
    new = {row[ID]: row for row in source}
    kept = tuple({**new.pop(r[ID]), UID: r[UID]} if r[ID] in new else r for r in rows)
    return (*kept, *new.values())


def begin(lake: lakebed.Lake, seed: int) -> Story:
    dice = Random(seed)
    properties = {"lakebed.upgrade": dice.choice(["auto", "auto", "never"])}
    by = dice.choice(PARTITIONS)
    table = lake.create_table(
        "s.t", SCHEMA, primary_key=["id"], partition_by=by, properties=properties
    )
    story = Story(lake, table, dice)
    (first,) = table.history()
    formats = tuple(table.formats)
    story.model.lines["main"] = Line({0: Version((), START, first.time_ms, formats, frozenset())})
    return story
