"""Plans with the index of files and without it give the same files, after any history."""

import random
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import psycopg
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg import sql

import lakebed
from lakebed.core import index_search
from lakebed.core.index import FileIndex
from lakebed.core.plan import Plan
from lakebed.core.scan import Planner, make_plan
from lakebed.model.binding import bind
from lakebed.model.errors import NoChanges
from lakebed.model.history import TableHead
from lakebed.model.ids import Version
from lakebed.sql.predicate import parse_predicate
from tests.examples import examples

SCHEMA = "id long, name string, amount double, price decimal(12,2), day date, s struct<n int>"
SPECS: tuple[list[str], ...] = (
    [],
    ["day(day)"],
    ["bucket(3, id)"],
    ["name"],
    ["truncate(2, name)", "id"],
)
CONDITIONS = (
    "id = {n}",
    "id < {n}",
    "id BETWEEN {n} AND {m}",
    "id IN ({n}, {m}, 3)",
    "NOT id > {n}",
    "id != {n}",
    "name = 'n{n:02d}'",
    "name LIKE 'n{d}%' AND id > {m}",
    "name IS NULL OR id = {n}",
    "amount > {n}.5",
    "amount <= {n} OR s.n = {m}",
    "price = {n}.25",
    "day = DATE '1970-01-{e:02d}'",
    "day >= DATE '1970-01-{e:02d}' AND NOT (id < {m})",
    "s.n IS NULL",
    "s.n < {n}",
    "id = 5.5",
)
STEPS = ("append", "append", "delete", "update", "overwrite", "restore", "branch", "partition")
INDEX = ("extend", "drop", "leave")


def rows(dice: random.Random) -> list[dict[str, Any]]:
    low = dice.randrange(40)
    return [_row(dice, dice.randrange(low, low + 10)) for _ in range(dice.randrange(1, 5))]


def _row(dice: random.Random, n: int) -> dict[str, Any]:
    return {
        "id": n,
        "name": None if dice.random() < 0.2 else f"n{n:02d}" + "x" * dice.choice((0, 40)),
        "amount": dice.choice((None, float("nan"), n + 0.5, float(-n))),
        "price": dice.choice((None, n + 0.25)),
        "day": None if n % 7 == 0 else n % 20,
        "s": dice.choice((None, {"n": n}, {"n": None})),
    }


def _arrow(found: list[dict[str, Any]]) -> pa.Table:
    kinds = {
        "id": pa.int64(),
        "name": pa.string(),
        "amount": pa.float64(),
        "price": pa.float64(),
        "day": pa.int32(),
        "s": pa.struct([("n", pa.int32())]),
    }
    made = pa.Table.from_pylist(found, pa.schema(list(kinds.items())))
    made = made.set_column(3, "price", made["price"].cast(pa.decimal128(12, 2)))
    return made.set_column(4, "day", made["day"].cast(pa.date32()))


def step(table: lakebed.Table, dice: random.Random, kind: str) -> None:
    branches = ["main", *(b.name for b in table.refs() if b.name != "main")]
    branch = dice.choice(branches)
    n = dice.randrange(45)
    match kind:
        case "append":
            table.append(_arrow(rows(dice)), branch=branch)
        case "delete":
            table.delete(f"id >= {n} AND id < {n + 6}", branch=branch)
        case "update":
            table.update({"amount": "amount + 1"}, f"id = {n}", branch=branch)
        case "overwrite":
            table.overwrite(_arrow([_row(dice, n)]), where=f"id = {n}", branch=branch)
        case "restore" if branch == "main":
            table.restore(version=dice.randrange(table.version + 1))
        case "branch" if len(branches) < 4:
            table.create_branch(f"b{len(branches)}", version=dice.randrange(table.version + 1))
        case "partition":
            with suppress(NoChanges):
                table.alter().set_partitioning(dice.choice(SPECS)).commit()
        case _:
            pass


class Both:
    """A table planned with an index of small chunks, and without one."""

    def __init__(self, lake: lakebed.Lake, table: lakebed.Table) -> None:
        store = lake._parts.planner._store
        self._table = table
        self._parts = lake._parts
        self.index = FileIndex(store, width=3)
        self.empty = FileIndex(store)
        self._with = Planner(store, self.index)
        self.used = 0

    @property
    def main(self) -> TableHead:
        return self._table._head("read", "main")

    def change(self, what: str) -> None:
        if what == "extend":
            while self.index.extend(self.main.id):
                pass
        elif what == "drop":
            self.index.drop(self.main.id)

    def compare(self, where: str) -> None:
        for branch in self._table.refs():
            head = self._parts.refs.on_ref(self.main, branch.name)
            for version in range(head.version + 1):
                self._compare_at(head, Version(version), where)

    def _compare_at(self, head: TableHead, version: Version, where: str) -> None:
        predicate = parse_predicate(where)
        look = self._with.look(head, version)
        selected = self._with.select(head, version, lambda schema: bind(predicate, schema))
        assert selected.state == look.state
        assert selected.visible == len(look.live)
        self.used += len(selected.live) < len(look.live)

        def plan(live: list[Any], visible: int | None) -> Plan:
            return make_plan(
                head,
                version,
                look.state.schema,
                live=live,
                visible=visible,
                specs=look.specs,
                columns=None,
                predicate=predicate,
                positions=self._with.positions,
            )

        assert plan(selected.live, selected.visible) == plan(look.live, None)


def history(lake: lakebed.Lake, seed: int, steps: int) -> int:
    """How often the index left files out; pages of two chunks are kept in memory already."""
    with patch.object(index_search, "_WHOLE", 2):
        return _history(lake, seed, steps)


def _history(lake: lakebed.Lake, seed: int, steps: int) -> int:
    dice = random.Random(seed)
    table = lake.create_table("s.t", SCHEMA, partition_by=dice.choice(SPECS))
    both = Both(lake, table)
    for _ in range(steps):
        step(table, dice, dice.choice(STEPS))
        both.change(dice.choice(INDEX))
        for condition in dice.sample(CONDITIONS, 3):
            n = dice.randrange(45)
            values = {"n": n, "m": dice.randrange(45), "d": n // 10, "e": n % 20 + 1}
            both.compare(condition.format(**values))
    return both.used


@settings(
    max_examples=examples(10, 300),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(seed=st.integers(0, 10**6))
def test_plans_are_the_same_on_sqlite(seed: int) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        lakebed.open(Path(folder) / "lake", create=True) as lake,
    ):
        history(lake, seed, 10)


@contextmanager
def _schema(server: str) -> Iterator[str]:
    name = f"t_{uuid.uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(name)))
        try:
            yield f"{server}{'&' if '?' in server else '?'}schema={name}"
        finally:
            connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(name)))


@pytest.mark.postgres
@settings(
    max_examples=examples(2, 50),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(seed=st.integers(0, 10**6))
def test_plans_are_the_same_on_postgres(postgres_server: str, seed: int) -> None:
    with (
        _schema(postgres_server) as url,
        tempfile.TemporaryDirectory() as folder,
        lakebed.open(url, create=True, warehouse=folder) as lake,
    ):
        history(lake, seed, 10)


def test_index_leaves_files_out(tmp_path: Path) -> None:
    with lakebed.open(tmp_path / "lake", create=True) as lake:
        assert history(lake, 7, 30) > 20
