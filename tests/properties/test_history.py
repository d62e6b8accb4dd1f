"""Random histories: a real lake and a list of rows per version say the same after every step.

At the end the check is clean, and deltalake and PyIceberg read the same from the folder.
"""

import random
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import deltalake
import orjson
import psycopg
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from hypothesis.stateful import run_state_machine_as_test as run
from psycopg import sql
from pyiceberg.table import StaticTable

import lakebed

NAMES = ("a.t", "a.u", "b.c.t")
PARTS = (None, "a", "b", "")
FORMATS = (["delta", "iceberg"], ["delta"], ["iceberg"])
Row = dict[str, Any]
KINDS = ("append", "overwrite", "partitions", "where")


@dataclass(frozen=True)
class Change:
    """A write: `value` is what the partition column must be for `where`."""

    kind: str
    new: tuple[Row, ...]
    value: str | None = None

    def removes(self, rows: list[Row]) -> list[Row]:
        match self.kind:
            case "append":
                return []
            case "overwrite":
                return rows
            case "partitions":
                touched = {row["p"] for row in self.new}
                return [row for row in rows if row["p"] in touched]
            case _:
                return [row for row in rows if row["p"] == self.value]

    def after(self, rows: list[Row]) -> list[Row]:
        removed = {row["id"] for row in self.removes(rows)}
        return [row for row in rows if row["id"] not in removed] + list(self.new)

    def sees(self, rows: tuple[Row, ...]) -> bool:
        """Did the decision rest on where such rows are?"""
        return bool(self.removes(list(rows)))

    def write(self, table: Any, **options: Any) -> Any:
        rows = list(self.new)
        match self.kind:
            case "append":
                return table.append(rows, **options)
            case "overwrite":
                return table.overwrite(rows, **options)
            case "partitions":
                return table.overwrite(rows, partitions=True, **options)
            case _:
                condition = "p IS NULL" if self.value is None else f"p = '{self.value}'"
                return table.overwrite(rows, where=condition, **options)


@dataclass
class Version:
    rows: list[Row]
    columns: tuple[str, ...]
    time_ms: int
    formats: tuple[str, ...]


@dataclass
class Model:
    """What a table should be: every version it ever had."""

    table: lakebed.Table
    partitioned: bool
    versions: list[Version] = field(default_factory=list)
    properties: dict[str, str] = field(default_factory=dict)
    applications: dict[str, tuple[int, int]] = field(default_factory=dict)  # number, version

    @property
    def head(self) -> Version:
        return self.versions[-1]

    def add(
        self,
        commit: lakebed.Commit,
        rows: list[Row] | None = None,
        *,
        columns: tuple[str, ...] | None = None,
        formats: tuple[str, ...] | None = None,
    ) -> None:
        assert commit.version == len(self.versions)
        assert not self.versions or commit.time_ms > self.head.time_ms
        self.versions.append(
            Version(
                self.head.rows if rows is None else rows,
                columns or self.head.columns,
                commit.time_ms,
                formats or self.head.formats,
            )
        )

    def starts(self, format_: str) -> int | None:
        """The first version that a format offers now; None when it is off."""
        start = None
        for number, version in enumerate(self.versions):
            if format_ not in version.formats:
                start = None
            elif start is None:
                start = number
        return start


def shown(rows: list[Row]) -> list[list[tuple[str, Any]]]:
    """Rows in no order; NULL is like a column that is not there."""
    plain = [sorted((k, v) for k, v in row.items() if v is not None) for row in rows]
    return sorted(plain, key=lambda row: dict(row)["id"])


class History(RuleBasedStateMachine):
    """Subclasses say where the lake is."""

    folder: Path | None = None

    def create(self) -> lakebed.Lake:
        raise NotImplementedError

    def reopen(self) -> lakebed.Lake:
        """The same lake by another handle; only where it survives being closed."""
        raise NotImplementedError

    @initialize(seed=st.integers(0, 2**32 - 1))
    def begin(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.last_id = 0
        self.models: dict[str, Model] = {}
        self.lake = self.create()
        self.create_table(NAMES[0], True, [None, "a"], FORMATS[0])

    def rows(self, parts: list[str | None], columns: tuple[str, ...] = ()) -> tuple[Row, ...]:
        made = []
        for part in parts:
            self.last_id += 1
            extra = {c: self.last_id * 10 for c in columns if c not in ("id", "p")}
            made.append({"id": self.last_id, "p": part, **extra})
        return tuple(made)

    def change_of(self, model: Model, kind: str, parts: list[str | None]) -> Change:
        if not model.partitioned and kind in ("partitions", "where"):
            kind = "overwrite"
        value = parts[0] if parts else None
        if kind == "where":
            parts = [value] * len(parts)
        return Change(kind, self.rows(parts, model.head.columns), value)

    def pick(self, number: int) -> tuple[str, Model]:
        names = sorted(self.models)
        name = names[number % len(names)]
        return name, self.models[name]

    # Tables come, go and change their names.

    @rule(
        name=st.sampled_from(NAMES),
        partitioned=st.booleans(),
        parts=st.lists(st.sampled_from(PARTS), max_size=2),
        formats=st.sampled_from(FORMATS),
    )
    def create_table(
        self, name: str, partitioned: bool, parts: list[str | None], formats: list[str]
    ) -> None:
        if name in self.models:
            with pytest.raises(lakebed.TableExists):
                self.lake.create_table(name, "id long not null, p string")
            return
        by = ["p"] if partitioned else []
        rows = self.rows(parts)
        given: Any = "id long not null, p string"
        if rows:
            kinds = pa.schema([pa.field("id", pa.int64(), nullable=False), ("p", pa.string())])
            given = pa.Table.from_pylist(list(rows), kinds)
        table = self.lake.create_table(name, given, partition_by=by, formats=formats)
        model = Model(table, partitioned)
        commit = table.history()[0]
        model.versions = [Version(list(rows), ("id", "p"), commit.time_ms, tuple(formats))]
        self.models[name] = model

    @precondition(lambda self: len(self.models) > 1)
    @rule(number=st.integers(0, 9), purge=st.booleans())
    def drop(self, number: int, purge: bool) -> None:
        name, model = self.pick(number)
        self.lake.drop_table(name, purge=purge)
        del self.models[name]
        with pytest.raises(lakebed.TableNotFound):
            model.table.to_arrow()

    @precondition(lambda self: self.models)
    @rule(number=st.integers(0, 9), name=st.sampled_from(NAMES))
    def rename(self, number: int, name: str) -> None:
        old, model = self.pick(number)
        if name in self.models and name != old:
            with pytest.raises(lakebed.TableExists):
                self.lake.rename_table(old, name)
            return
        self.lake.rename_table(old, name)
        self.models[name] = self.models.pop(old)
        assert model.table.name == name

    # One table, one commit.

    @precondition(lambda self: self.models)
    @rule(
        number=st.integers(0, 9),
        kind=st.sampled_from(KINDS),
        parts=st.lists(st.sampled_from(PARTS), max_size=3),
        publish=st.sampled_from(["commit", "commit", "background"]),
    )
    def write(self, number: int, kind: str, parts: list[str | None], publish: str) -> None:
        _, model = self.pick(number)
        change = self.change_of(model, kind, parts)
        commit = change.write(model.table, publish=publish)
        model.add(commit, change.after(model.head.rows))

    @precondition(lambda self: self.models)
    @rule(number=st.integers(0, 9), kind=st.sampled_from(["string", "long"]))
    def add_column(self, number: int, kind: str) -> None:
        _, model = self.pick(number)
        name = f"c{len(model.head.columns)}"
        commit = model.table.alter().add_column(name, "long").commit()
        model.add(commit, columns=(*model.head.columns, name))

    @precondition(lambda self: self.models)
    @rule(number=st.integers(0, 9), value=st.text("xyz", max_size=3))
    def set_properties(self, number: int, value: str) -> None:
        _, model = self.pick(number)
        model.add(model.table.set_properties({"owner.note": value}))
        model.properties["owner.note"] = value
        assert dict(model.table.properties) == model.properties

    @precondition(lambda self: self.models)
    @rule(number=st.integers(0, 9), formats=st.sampled_from(FORMATS))
    def set_formats(self, number: int, formats: list[str]) -> None:
        _, model = self.pick(number)
        model.add(model.table.set_formats(formats), formats=tuple(formats))

    @precondition(lambda self: self.models)
    @rule(number=st.integers(0, 9), application=st.sampled_from("XY"), count=st.integers(0, 4))
    def write_once(self, number: int, application: str, count: int) -> None:
        _, model = self.pick(number)
        change = self.change_of(model, "append", ["a"])
        commit = change.write(model.table, txn=(application, count))
        last, version = model.applications.get(application, (-1, -1))
        if count <= last:
            assert (commit.replayed, commit.version) == (True, version)
        else:
            model.applications[application] = (count, commit.version)
            model.add(commit, change.after(model.head.rows))

    @precondition(lambda self: self.models)
    @rule(number=st.integers(0, 9))
    def write_again_with_the_same_key(self, number: int) -> None:
        _, model = self.pick(number)
        key = str(uuid.uuid4())
        change = self.change_of(model, "append", ["b", None])
        first = change.write(model.table, idempotency_key=key)
        again = change.write(model.table, idempotency_key=key)
        assert (first.replayed, again.replayed) == (False, True)
        assert again.version == first.version
        model.add(first, change.after(model.head.rows))

    # Several tables, one commit.

    @precondition(lambda self: self.models)
    @rule(
        kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=3),
        parts=st.lists(st.sampled_from(PARTS), max_size=2),
        end=st.sampled_from(["commit", "commit", "rollback", "raise"]),
    )
    def transaction(self, kinds: list[str], parts: list[str | None], end: str) -> None:
        staged = {name: list(model.head.rows) for name, model in self.models.items()}
        touched = set()
        tx = self.lake.transaction(message="several")
        with pytest.raises(ZeroDivisionError) if end == "raise" else nullcontext(), tx:
            for at, kind in enumerate(kinds):
                name, model = self.pick(at)
                change = self.change_of(model, kind, parts)
                change.write(tx.table(name))
                staged[name] = change.after(staged[name])
                touched.add(name)
                seen = tx.table(name).scan().to_arrow().to_pylist()
                assert shown(seen) == shown(staged[name])
            if end == "rollback":
                tx.rollback()
            elif end == "raise":
                raise ZeroDivisionError
        if end == "commit":
            assert set(tx.commits) == touched
            for name in touched:
                self.models[name].add(tx.commits[name], staged[name])

    @precondition(lambda self: self.models)
    @rule(
        number=st.integers(0, 9),
        ours=st.sampled_from(KINDS),
        our_parts=st.lists(st.sampled_from(PARTS), max_size=2),
        theirs=st.sampled_from([*KINDS, "properties", "column"]),
        their_parts=st.lists(st.sampled_from(PARTS), max_size=2),
        isolation=st.sampled_from(["write_serializable", "serializable"]),
    )
    def stale_transaction(
        self,
        number: int,
        ours: str,
        our_parts: list[str | None],
        theirs: str,
        their_parts: list[str | None],
        isolation: str,
    ) -> None:
        name, model = self.pick(number)
        mine = self.change_of(model, ours, our_parts)
        base = model.head.rows
        tx = self.lake.transaction(isolation=isolation)
        mine.write(tx.table(name))
        clash = False
        if theirs == "properties":
            self.set_properties(number, "z")
        elif theirs == "column":
            self.add_column(number, "long")
        else:
            other = self.change_of(model, theirs, their_parts)
            model.add(other.write(model.table), other.after(base))
            gone = {row["id"] for row in other.removes(base)}
            both = any(row["id"] in gone for row in mine.removes(base))
            unseen = mine.sees(other.new) and (isolation == "serializable" or theirs != "append")
            clash = both or unseen
        if clash:
            with pytest.raises(lakebed.CommitConflict):
                tx.commit()
            return
        lost = {row["id"] for row in mine.removes(base)}
        kept = [row for row in model.head.rows if row["id"] not in lost]
        model.add(tx.commit()[name], kept + list(mine.new))

    # Publication and processes.

    @rule()
    def publish(self) -> None:
        assert self.lake.publish().lags == ()

    @precondition(lambda self: self.folder is not None)
    @rule()
    def close_and_open(self) -> None:
        self.lake.close()
        self.lake = self.reopen()
        for name, model in self.models.items():
            model.table = self.lake.table(name)

    @invariant()
    def rows_are_those_of_the_model(self) -> None:
        for model in getattr(self, "models", {}).values():
            table, head = model.table, model.head
            assert table.version == len(model.versions) - 1
            assert table.row_count == len(head.rows)
            whole = table.to_arrow()
            assert tuple(whole.column_names) == head.columns
            assert shown(whole.to_pylist()) == shown(head.rows)
            number = self.dice.randrange(len(model.versions))
            self.check_version(model, number)

    def check_version(self, model: Model, number: int) -> None:
        wanted = model.versions[number]
        by_number = model.table.scan(version=number).to_arrow()
        assert tuple(by_number.column_names) == wanted.columns
        assert shown(by_number.to_pylist()) == shown(wanted.rows)
        until = model.versions[number + 1].time_ms if number + 1 < len(model.versions) else None
        moment = wanted.time_ms if until is None else self.dice.randrange(wanted.time_ms, until)
        by_time = model.table.scan(timestamp=moment)
        assert by_time.plan().version == number
        assert {f.path for f in model.table.files(version=number)} == {
            f.file.path for f in by_time.plan().files
        }

    def teardown(self) -> None:
        if not hasattr(self, "lake"):
            return
        try:
            assert self.lake.publish().lags == ()
            assert self.lake.check().findings == []
            if self.folder is not None:
                for model in self.models.values():
                    self.check_delta(model)
                    self.check_iceberg(model)
        finally:
            self.lake.close()
            if self.folder is not None:
                shutil.rmtree(self.folder)

    def offered(self, model: Model, format_: str) -> Iterator[int]:
        """The head, and some of the versions that a format offers."""
        start = model.starts(format_)
        if start is None:
            return
        versions = range(start, len(model.versions))
        yield from {versions[-1], *self.dice.sample(versions, min(3, len(versions)))}

    def check_delta(self, model: Model) -> None:
        for number in self.offered(model, "delta"):
            read = deltalake.DeltaTable(model.table.location, version=number).to_pyarrow_table()
            assert set(read.column_names) == set(model.versions[number].columns)
            assert shown(read.to_pylist()) == shown(model.versions[number].rows)

    def check_iceberg(self, model: Model) -> None:
        folder = Path(model.table.location) / "metadata"
        for number in self.offered(model, "iceberg"):
            hint = (folder / "version-hint.text").read_text()
            newest = orjson.loads((folder / f"{hint}.metadata.json").read_bytes())
            times = sorted((s["timestamp-ms"], s["snapshot-id"]) for s in newest["snapshots"])
            until = [i for time_ms, i in times if time_ms <= model.versions[number].time_ms]
            table = StaticTable.from_metadata(model.table.location)
            read = table.scan(snapshot_id=until[-1]).to_arrow().to_pylist() if until else []
            assert shown(read) == shown(model.versions[number].rows)


class InMemory(History):
    def create(self) -> lakebed.Lake:
        return lakebed.open(":memory:")


class InFolder(History):
    def create(self) -> lakebed.Lake:
        self.folder = Path(tempfile.mkdtemp(prefix="history-"))
        return lakebed.open(self.folder, create=True)

    def reopen(self) -> lakebed.Lake:
        return lakebed.open(str(self.folder))


def bounded(examples: int, steps: int) -> settings:
    return settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        print_blob=True,
    )


@pytest.mark.slow
def test_histories_in_memory() -> None:
    run(InMemory, settings=bounded(40, 20))


@pytest.mark.slow
def test_histories_in_a_folder_as_other_readers_see_them() -> None:
    run(InFolder, settings=bounded(15, 20))


def test_a_few_histories_in_a_folder() -> None:
    run(InFolder, settings=bounded(3, 8))


@pytest.mark.postgres
def test_histories_on_postgresql(postgres_server: str) -> None:
    class OnPostgres(History):
        def create(self) -> lakebed.Lake:
            self.folder = Path(tempfile.mkdtemp(prefix="history-"))
            self.schema = f"t_{uuid.uuid4().hex}"
            self.url = (
                f"{postgres_server}{'&' if '?' in postgres_server else '?'}schema={self.schema}"
            )
            return lakebed.open(self.url, create=True, warehouse=self.folder)

        def reopen(self) -> lakebed.Lake:
            return lakebed.open(self.url)

        def teardown(self) -> None:
            super().teardown()
            if hasattr(self, "schema"):
                dropped = sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(self.schema))
                with psycopg.connect(postgres_server, autocommit=True) as connection:
                    connection.execute(dropped)

    run(OnPostgres, settings=bounded(4, 12))
