"""Changes of rows that meet: planned again from the new head, never lost, never done twice."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import lakebed

SCHEMA = "id long not null, n int"


@pytest.fixture
def table(disk: lakebed.Lake) -> lakebed.Table:
    table = disk.create_table("a.t", SCHEMA, primary_key=["id"])
    table.append([{"id": i, "n": 0} for i in range(100)])
    return table


def together(*jobs: Callable[[], object]) -> list[object]:
    """All jobs at once; the first error is raised."""
    barrier = threading.Barrier(len(jobs))

    def run(job: Callable[[], object]) -> object:
        barrier.wait(60)
        return job()

    with ThreadPoolExecutor(len(jobs)) as pool:
        return [future.result() for future in [pool.submit(run, job) for job in jobs]]


def numbers(table: lakebed.Table) -> dict[int, int]:
    listed = table.to_arrow().to_pylist()
    found = {r["id"]: r["n"] for r in listed}
    assert len(found) == len(listed)
    return found


def orphans(table: lakebed.Table) -> set[str]:
    known = {f.path for v in range(table.version + 1) for f in table.files(version=v)}
    root = Path(table.location)
    return {p.relative_to(root).as_posix() for p in root.glob("data/**/*.parquet")} - known


def test_no_update_of_one_row_is_lost(table: lakebed.Table) -> None:
    def count_up() -> None:
        for _ in range(4):
            table.update({"n": "n + 1"}, "id = 7")

    together(*[count_up] * 3)

    assert numbers(table)[7] == 12
    assert (table.version, orphans(table)) == (13, set())


def test_deletes_of_different_rows_of_one_file_all_stand(table: lakebed.Table) -> None:
    def delete(first: int) -> None:
        for i in range(first, 40, 4):
            assert table.delete(f"id = {i}").summary["deleted_rows"] == 1

    together(*[lambda n=n: delete(n) for n in range(4)])

    assert sorted(numbers(table)) == list(range(40, 100))


def test_a_row_deleted_by_two_is_deleted_once(table: lakebed.Table) -> None:
    commits = together(*[lambda: table.delete("id < 50")] * 3)

    deleted = [c.summary["deleted_rows"] for c in commits if isinstance(c, lakebed.Commit)]
    assert sorted(deleted) == [0, 0, 50]
    assert (sorted(numbers(table)), table.version) == (list(range(50, 100)), 2)


def test_upserts_of_the_same_keys_leave_one_row_each(table: lakebed.Table) -> None:
    def upsert(n: int) -> None:
        table.upsert([{"id": i, "n": n} for i in range(95, 110)])

    together(*[lambda n=n: upsert(n) for n in range(1, 4)])

    found = numbers(table)
    assert sorted(found) == list(range(110))
    assert len({found[i] for i in range(95, 110)}) == 1
    assert orphans(table) == set()


def test_a_delete_beside_a_steady_stream_of_appends_finishes(
    disk: lakebed.Lake, table: lakebed.Table
) -> None:
    done = threading.Event()

    def append() -> int:
        number = 1000
        while not done.is_set() and number < 1200:
            table.append([{"id": number, "n": 1}])
            number += 1
        return number

    def change() -> None:
        try:
            for isolation in ("write_serializable", "serializable"):
                table.delete("n = 0 AND id % 10 < 5", isolation=isolation)
                table.update({"n": "n + 5"}, "n = 0", isolation=isolation)
        finally:
            done.set()

    stop, _ = together(append, change)

    found = numbers(table)
    assert {i for i in found if i < 1000} == {i for i in range(100) if i % 10 >= 5}
    assert [i for i in found if i >= 1000] == list(range(1000, int(str(stop))))
    assert {found[i] for i in found if i < 1000} == {5}


def test_rewrites_and_vectors_of_one_file_meet(table: lakebed.Table) -> None:
    def rewrite() -> None:
        table.delete("id = 1", settings={"write.delete.mode": "copy-on-write"})

    together(rewrite, lambda: table.update({"n": 9}, "id = 2"), lambda: table.delete("id = 3"))

    found = numbers(table)
    assert sorted(found) == [0, 2, *range(4, 100)]
    assert (found[2], orphans(table)) == (9, set())


def test_without_retries_a_conflict_is_told_and_leaves_no_file(tmp_path: Path) -> None:
    with lakebed.open(tmp_path / "l", create=True, settings={"commit.retries": 0}) as lake:
        table = lake.create_table("a.t", SCHEMA)
        table.append([{"id": 1, "n": 0}, {"id": 2, "n": 0}])
        late = lake.transaction()
        late.table("a.t").update({"n": 1}, "id = 1")
        table.update({"n": 2}, "id = 1")

        with pytest.raises(lakebed.CommitConflict, match="same rows"):
            late.commit()

        assert (numbers(table), orphans(table)) == ({1: 2, 2: 0}, set())
