"""Every pair of operations that meet, at both isolation levels: the table of the guide is true."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lakebed

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guides" / "transactions.md"
Act = Callable[..., object]
Rows = list[tuple[int, int]]


def _merge(table: Any, n: int, **how: Any) -> object:
    merge = table.merge([{"id": 500 + n, "n": n}, {"id": 600 + n, "n": 60 - n}], "t.n = s.n")
    merge = merge.when_matched_update({"id": "t.id + 1000"}).when_not_matched_insert_all()
    return merge.execute(**how)


# Each is about the rows that have `n`. A rewrite is a delete by copy-on-write.
OPERATIONS: dict[str, Act] = {
    "append": lambda table, n, **how: table.append([{"id": 100 + n, "n": n}], **how),
    "overwrite": lambda table, n, **how: table.overwrite([{"id": 200 + n, "n": n}], **how),
    "delete": lambda table, n, **how: table.delete(f"n = {n}", **how),
    "update": lambda table, n, **how: table.update({"id": "id + 1000"}, f"n = {n}", **how),
    "merge": _merge,
    "rewrite": lambda table, n, **how: table.delete(f"n = {n}", **how),
    "alter": lambda table, n, **how: table.alter(**how).add_column(f"c{n}", "int").commit(),
    "restore": lambda table, n, **how: table.restore(version=1, **how),
}
FIRST = [(n, 9) for n in range(3)]
START = [*FIRST[1:], *((10 * n + i, n) for n in range(5) for i in range(2))]


def done(operation: str, n: int, rows: Rows) -> Rows:
    """The same in plain Python."""
    moved = [(i + 1000, k) if k == n else (i, k) for i, k in rows]
    match operation:
        case "append":
            return [*rows, (100 + n, n)]
        case "overwrite":
            return [(200 + n, n)]
        case "delete" | "rewrite":
            return [(i, k) for i, k in rows if k != n]
        case "update":
            return moved
        case "merge":
            source = [(500 + n, n), (600 + n, 60 - n)]
            return [*moved, *(s for s in source if s[1] not in {k for _, k in rows})]
        case "restore":
            return FIRST
        case _:
            return rows


def modes(operation: str) -> dict[str, str]:
    mode = "copy-on-write" if operation == "rewrite" else "merge-on-read"
    return {f"write.{kind}.mode": mode for kind in ("delete", "update", "merge")}


def prepared(lake: lakebed.Lake, name: str, ours: str) -> lakebed.Table:
    """Two files, and rows with ids, as every table has after its first deletion vector."""
    table = lake.create_table(name, "id long, n long", properties=modes(ours))
    table.append([{"id": i, "n": n} for i, n in FIRST])
    table.append([{"id": i, "n": n} for i, n in START[2:]])
    table.delete("id = 0 AND n = 9", settings={**modes("delete"), "write.rewrite-above": 1.0})
    return table


def rows_of(table: lakebed.Table) -> Rows:
    return sorted((row["id"], row["n"]) for row in table.to_arrow().to_pylist())


def follows(lake: lakebed.Lake, ours: str, theirs: str, n: int, isolation: str) -> bool:
    """Ours is about the rows of 1, theirs about those of `n`, and theirs is committed first."""
    name = f"a.t{n}_{isolation}"
    table = prepared(lake, name, ours)
    tx = lake.transaction(isolation=isolation)
    OPERATIONS[ours](tx.table(name), 1)
    OPERATIONS[theirs](table, n, settings=modes(theirs))
    try:
        tx.commit()
    except lakebed.CommitConflict:
        assert rows_of(table) == sorted(done(theirs, n, START))
        return False
    serial = [done(ours, 1, done(theirs, n, START)), done(theirs, n, done(ours, 1, START))]
    passed = isolation == "write_serializable" and theirs == "append"
    assert rows_of(table) in [sorted(rows) for rows in (serial if passed else serial[:1])]
    return True


def promised() -> dict[tuple[str, str], str]:
    """The table of the guide: ours, theirs, what happens."""
    lines = re.findall(r"(?m)^\| \*\*(\w+)\*\* \|(.*)\|$", GUIDE.read_text("utf-8"))
    return {
        (ours, theirs): cell.strip()
        for ours, cells in lines
        for theirs, cell in zip(OPERATIONS, cells.split("|"), strict=True)
    }


# What each word of the guide means: (isolation, whether theirs is about the same rows) -> follows.
WORDS: dict[str, Callable[[str, bool], bool]] = {
    "follows": lambda isolation, same: True,
    "unless serializable": lambda isolation, same: isolation == "write_serializable" or not same,
    "unless same rows": lambda isolation, same: not same,
    "conflict": lambda isolation, same: False,
}


@pytest.mark.parametrize("theirs", OPERATIONS)
@pytest.mark.parametrize("ours", OPERATIONS)
def test_a_pair_of_operations_meets_as_the_guide_says(
    lake: lakebed.Lake, ours: str, theirs: str
) -> None:
    meant = WORDS[promised()[ours, theirs]]

    for isolation in ("write_serializable", "serializable"):
        for n in (1, 2):
            same = n == 1 or ours == "overwrite"  # which is about all rows
            found = follows(lake, ours, theirs, n, isolation)
            assert found == meant(isolation, same), (isolation, n)


def test_the_guide_has_every_pair() -> None:
    assert set(promised()) == {(ours, theirs) for ours in OPERATIONS for theirs in OPERATIONS}


def test_a_change_of_the_table_meets_a_restore_of_its_columns(lake: lakebed.Lake) -> None:
    table = lake.create_table("a.t", "id long")
    table.alter().add_column("n", "int").commit()
    tx = lake.transaction()
    tx.table("a.t").alter().add_column("m", "int").commit()
    table.restore(version=0)

    with pytest.raises(lakebed.CommitConflict, match="metadata"):
        tx.commit()

    assert [f.name for f in table.schema.fields] == ["id"]
