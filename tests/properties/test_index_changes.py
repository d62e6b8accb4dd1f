"""Changes of rows find the same ones with the index of files and without it."""

import random
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lakebed
from lakebed.core import index_probe
from lakebed.model.errors import CommitConflict
from lakebed.rowops import keys
from tests.examples import examples

SCHEMA = "id long, name string, amount double"
STEPS = ("append", "delete", "update", "merge", "overwrite", "mixed", "mixed", "race", "branch")
_KEPT = ("deleted_rows", "updated_rows", "inserted_rows", "scanned_files", "copied_rows")


def rows(dice: random.Random) -> pa.Table:
    low = dice.randrange(40)
    ids = sorted({dice.randrange(low, low + 8) for _ in range(dice.randrange(1, 6))})
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "name": pa.array([None if n % 5 == 0 else f"n{n:02d}" for n in ids], pa.string()),
            "amount": pa.array([dice.choice((None, float("nan"), n + 0.5)) for n in ids]),
        }
    )


def where(dice: random.Random) -> str:
    """For the engine, or what a scan takes too."""
    n = dice.randrange(45)
    return dice.choice((f"upper(name) = 'N{n:02d}' AND id < {n + 9}", plain(dice), plain(dice)))


def plain(dice: random.Random) -> str:
    n = dice.randrange(45)
    return dice.choice(
        (
            f"id = {n}",
            f"id >= {n} AND id < {n + 4}",
            f"name = 'n{n:02d}'",
            f"name IS NULL AND id > {n}",
            f"amount > {n}",
        )
    )


def step(lake: lakebed.Lake, dice: random.Random) -> object:
    """Do one thing; what it counted."""
    table = lake.table("s.t")
    branches = [ref.name for ref in table.refs()]
    branch = dice.choice(branches)
    match dice.choice(STEPS):
        case "append":
            table.append(rows(dice), branch=branch)
        case "delete":
            return _counted(table.delete(where(dice), branch=branch))
        case "update":
            return _counted(table.update({"amount": "id + 0.25"}, where(dice), branch=branch))
        case "merge":
            return _counted(table.upsert(rows(dice), key="id", branch=branch))
        case "overwrite":
            n = dice.randrange(45)
            new = pa.table({"id": pa.array([n], pa.int64()), "name": ["o"], "amount": [0.5]})
            table.overwrite(new, where=f"id = {n}", branch=branch)
        case "mixed":
            return _mixed(lake, dice)
        case "race":
            return _race(lake, dice)
        case "branch" if len(branches) < 3:
            table.create_branch(f"b{len(branches)}", version=dice.randrange(table.version + 1))
    return None


def _mixed(lake: lakebed.Lake, dice: random.Random) -> object:
    """A transaction sees its own writes, over and over."""
    seen: list[object] = []
    with lake.transaction() as transaction:
        table = transaction.table("s.t")
        for _ in range(dice.randrange(1, 5)):
            match dice.randrange(5):
                case 0:
                    table.append(rows(dice))
                case 1:
                    seen.append(table.delete(where(dice)))
                case 2:
                    seen.append(table.update({"name": "name || '!'"}, where(dice)))
                case 3:
                    seen.append(table.upsert(rows(dice), key="id"))
                case _:
                    plan = table.scan(where=plain(dice)).plan()
                    seen.append((len(plan.files), plan.pruned))
        seen.append(sorted(map(repr, table.scan(where=plain(dice)).to_arrow().to_pylist())))
    return seen


def _race(lake: lakebed.Lake, dice: random.Random) -> object:
    """Rows that came in between are met or not: what a delete rests on is the same."""
    with suppress(CommitConflict), lake.transaction(isolation="serializable") as transaction:
        transaction.table("s.t").delete(where(dice))
        lake.table("s.t").append(rows(dice))
        return "done"
    return "refused"


def _counted(commit: Any) -> list[object]:
    return [commit.summary.get(name) for name in _KEPT]


def contents(lake: lakebed.Lake) -> dict[str, list[str]]:
    table = lake.table("s.t")
    return {
        ref.name: sorted(map(repr, table.scan(ref=ref.name).to_arrow().to_pylist()))
        for ref in table.refs()
    }


def narrow(lake: lakebed.Lake) -> None:
    """Chunks of three files: the index is of use in a small table, too."""
    lake._parts.planner._index._width = 3


@settings(
    max_examples=examples(4, 200),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(seed=st.integers(0, 10**6))
def test_changes_find_the_same_rows(seed: int) -> None:
    quiet = {"publish.mode": "background", "publish.formats": "delta"}
    with (
        ExitStack() as stack,
        tempfile.TemporaryDirectory() as folder,
        lakebed.open(Path(folder) / "with", create=True, settings=quiet) as indexed,
        lakebed.open(Path(folder) / "without", create=True, settings=quiet) as without,
    ):
        stack.enter_context(patch.object(keys, "_MOST_LISTED", 2))
        stack.enter_context(patch.object(index_probe, "_MOST_RANGES", 2))
        narrow(indexed)
        for lake in (indexed, without):
            table, dice = lake.create_table("s.t", SCHEMA), random.Random(seed)
            for _ in range(8):
                table.append(rows(dice))
            table.delete(plain(dice))
        index = indexed._parts.planner._index
        for _ in range(8):
            if dice.random() < 0.5:
                while index.extend(indexed.table("s.t").id):
                    pass
            turn = dice.randrange(10**9)
            done = step(indexed, random.Random(turn))
            assert done == step(without, random.Random(turn))
            assert contents(indexed) == contents(without)
