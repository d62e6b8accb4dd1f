"""Threads on one lake: a query sees one set of versions, statements do not mix."""

import threading
from collections.abc import Callable

from lakebed import CommitConflict, Lake


def run_all(*calls: Callable[[], None]) -> None:
    """All at once; the first failure is raised."""
    failures = list[BaseException]()

    def guarded(call: Callable[[], None]) -> None:
        try:
            call()
        except BaseException as error:  # handed to the test
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def test_tables_of_one_query_are_of_one_moment(lake: Lake) -> None:
    lake.sql("CREATE TABLE s.a (n BIGINT); CREATE TABLE s.b (n BIGINT)")
    lake.sql("CREATE VIEW s.both AS SELECT * FROM s.a UNION ALL SELECT * FROM s.b")
    over = threading.Event()

    def write() -> None:
        try:
            for n in range(12):
                lake.sql(
                    f"BEGIN; INSERT INTO s.a VALUES ({n}); INSERT INTO s.b VALUES ({n}); COMMIT"
                )
        finally:
            over.set()

    seen = set[int]()

    def read() -> None:
        while not over.is_set():
            rows = lake.sql("SELECT (SELECT count(*) FROM s.a) a, (SELECT count(*) FROM s.b) b")
            (counts,) = rows.to_pylist()
            assert counts["a"] == counts["b"]
            (through,) = lake.sql("SELECT count(*) AS n FROM s.both").to_pylist()
            assert through["n"] % 2 == 0
            seen.add(counts["a"])

    run_all(write, read, read)
    assert len(seen) > 1


def test_eight_threads_share_a_lake(lake: Lake) -> None:
    lake.sql("CREATE TABLE s.shared (thread BIGINT, n BIGINT)")

    def work(number: int) -> Callable[[], None]:
        def statements() -> None:
            for n in range(4):
                lake.sql("INSERT INTO s.shared VALUES ($t, $n)", {"t": number, "n": n})
                own = lake.sql("SELECT count(*) AS n FROM s.shared WHERE thread = ?", [number])
                assert own.to_pylist() == [{"n": n + 1}]
            while True:
                try:
                    lake.sql("DELETE FROM s.shared WHERE thread = ? AND n = 0", [number])
                    return
                except CommitConflict:  # another thread changed the same file
                    continue

        return statements

    run_all(*(work(number) for number in range(8)))

    rows = lake.sql("SELECT thread, count(*) AS n FROM s.shared GROUP BY thread ORDER BY 1")
    assert rows.to_pylist() == [{"thread": t, "n": 3} for t in range(8)]
    assert lake.check().clean
