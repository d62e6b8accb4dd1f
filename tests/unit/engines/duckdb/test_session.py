"""A session reads what is bound to it and nothing else, within its limits, and can be stopped."""

import re
import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest

from lakebed.engines.duckdb.instance import Limits
from lakebed.engines.duckdb.session import Session
from lakebed.model.errors import (
    Forbidden,
    LakebedError,
    ObjectMissing,
    QueryInterrupted,
    QueryOutOfMemory,
    SqlUnsupported,
)
from lakebed.storage.memory import MemoryStorage
from tests.unit.engines.duckdb.plans import LIMITS, by_duckdb, local


@pytest.fixture
def session() -> Session:
    return Session(MemoryStorage("host"), LIMITS)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM read_blob('/etc/passwd')",
        "SELECT * FROM glob('/etc/*')",
        "SELECT * FROM read_parquet('/etc/passwd')",
        "SELECT * FROM read_parquet('https://example.com/x.parquet')",
        "SELECT * FROM sniff_csv('/etc/passwd')",
    ],
)
def test_files_and_the_network_cannot_be_read(session: Session, sql: str) -> None:
    with session, pytest.raises(Forbidden):
        session.batches(sql).read_all()


@pytest.mark.parametrize(
    "sql",
    [
        "COPY (SELECT 1) TO '{folder}/out.csv'",
        "EXPORT DATABASE '{folder}/out'",
        "ATTACH '{folder}/x.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET threads = 1",
        "RESET threads",
        "PRAGMA threads = 1",
        "SET enable_external_access = true",
        "SET allowed_directories = ['/']",
    ],
)
def test_the_host_cannot_be_written_nor_the_configuration_changed(
    session: Session, tmp_path: Path, sql: str
) -> None:
    text = sql.format(folder=tmp_path)

    with session:
        with pytest.raises(SqlUnsupported):
            session.batches(text)
        with pytest.raises(LakebedError):  # nor as a statement of ours
            session.run(text)

    assert list(tmp_path.iterdir()) == []


def test_other_files_of_the_warehouse_stay_closed(tmp_path: Path) -> None:
    bound = local(tmp_path, "a int")
    bound.add([{"a": 1}])
    other = tmp_path / "other.parquet"
    other.write_bytes((tmp_path / "t" / bound.files[0].path).read_bytes())

    with Session(bound.storage, LIMITS) as session:
        session.bind_plan("t", bound.plan())
        assert session.batches("SELECT a FROM t").read_all().num_rows == 1
        with pytest.raises(Forbidden):
            session.batches(f"SELECT * FROM read_parquet('{other}')").read_all()


def test_variables_of_python_are_no_tables(session: Session) -> None:
    secret = pa.table({"a": [1]})

    with session, pytest.raises(LakebedError, match="secret"):
        session.batches("SELECT * FROM secret")

    assert secret.num_rows == 1


def test_plans_bound_after_the_first_statement_are_read_too(tmp_path: Path) -> None:
    table = local(tmp_path, "a int")
    table.add([{"a": 1}, {"a": 2}])

    for roots in ((), ("t",)):
        with Session(table.storage, LIMITS, roots=roots) as session:
            session.run("CREATE TEMP TABLE x AS SELECT 1 AS a")
            session.bind_plan("t", table.plan(deleted={0: [0]}))
            rows = session.batches("SELECT t.a FROM t").read_all()

            assert rows.to_pylist() == [{"a": 2}]


def test_small_files_do_not_come_as_small_batches(tmp_path: Path) -> None:
    table = local(tmp_path, "a int")
    for n in range(20):
        table.add([{"a": n}])

    with Session(table.storage, LIMITS) as session:
        session.bind_plan("t", table.plan())
        batches = list(session.batches("SELECT a FROM t"))

    assert len(batches) < 20
    assert sorted(v for b in batches for v in b.column(0).to_pylist()) == list(range(20))


def test_long_lists_of_files_are_read_like_short_ones(tmp_path: Path) -> None:
    table = local(tmp_path, "a int")
    for n in range(102):
        table.add([{"a": n}, {"a": -n}])

    with Session(table.storage, LIMITS) as session:
        session.bind_plan("t", table.plan(deleted={0: [0], 7: [1]}), metadata=("_file", "_pos"))
        rows = session.batches("SELECT * FROM t ORDER BY _file, _pos").read_all()
        shown = session.batches("EXPLAIN ANALYZE SELECT a FROM t").read_all()

    wanted = [(s * n, n, p) for n in range(102) for p, s in enumerate((1, -1))]
    wanted = [row for row in wanted if row[1:] not in ((0, 0), (7, 1))]
    assert [tuple(row.values()) for row in rows.to_pylist()] == wanted
    assert shown.num_rows == 1


def test_rows_can_be_bound_as_table_reader_and_batches(session: Session) -> None:
    table = pa.table({"a": [1, 2, 3]})

    with session:
        session.bind_rows("t", table)
        session.bind_rows("r", table.to_reader())
        session.bind_rows("b", table.to_batches())
        joined = "SELECT count(*) AS n FROM t JOIN r USING (a) JOIN b USING (a)"

        assert session.batches(joined).read_all().to_pylist() == [{"n": 3}]


def test_parameters_go_by_place_or_by_name(session: Session) -> None:
    with session:
        assert session.batches("SELECT ? + ? AS s", [1, 2]).read_all()["s"].to_pylist() == [3]
        assert session.batches("SELECT $x AS s", {"x": "a"}).read_all()["s"].to_pylist() == ["a"]


def test_results_are_streamed(session: Session) -> None:
    with session:
        first = next(session.batches("SELECT * FROM range(10_000_000_000_000)"))

    assert first.num_rows <= 200_000


@pytest.mark.parametrize(
    "sql", ["SELECT sum(a.i * b.i) FROM r a, r b", "SELECT a.i FROM r a, r b WHERE a.i >= 0"]
)
def test_a_long_query_is_stopped_from_another_thread(session: Session, sql: str) -> None:
    with session:
        session.run("CREATE TEMP TABLE r AS SELECT range AS i FROM range(3_000_000)")
        stopper = threading.Timer(0.5, session.interrupt)
        stopper.start()
        began = time.monotonic()
        with pytest.raises(QueryInterrupted) as caught:
            for _ in session.batches(sql):
                pass
        stopper.join()

        assert caught.value.code == "QUERY_INTERRUPTED"
        assert time.monotonic() - began < 30
        assert session.batches("SELECT 1 AS a").read_all().num_rows == 1  # it goes on


def test_what_memory_cannot_hold_is_spilled_and_the_folder_is_removed(tmp_path: Path) -> None:
    spill = tmp_path / "spill"
    sql = "SELECT count(*) AS n FROM (SELECT range AS i FROM range(8_000_000) ORDER BY hash(range))"

    with Session(MemoryStorage("m"), Limits(100 << 20, str(spill), threads=1)) as session:
        assert session.batches(f"{sql} WHERE i >= 0").read_all().to_pylist() == [{"n": 8_000_000}]
        session.run(
            "CREATE TEMP TABLE x AS SELECT range AS i, hash(range) AS h FROM range(9_000_000)"
        )
        assert any(spill.rglob("*"))

    assert not any(spill.rglob("*"))


def test_too_little_memory_is_an_error_with_a_way_out() -> None:
    limits = Limits(60 << 20, None, threads=1)

    with Session(MemoryStorage("m"), limits) as session, pytest.raises(QueryOutOfMemory) as caught:
        session.batches("SELECT list(range) AS a FROM range(50_000_000)").read_all()

    assert "query.memory-limit" in caught.value.hint


def test_limits_are_those_of_the_connection(session: Session) -> None:
    sql = "SELECT current_setting('threads') AS t, current_setting('TimeZone') AS z"

    with Session(MemoryStorage("m"), Limits(None, None, threads=1)) as limited:
        assert limited.batches(sql).read_all().to_pylist() == [{"t": 1, "z": "UTC"}]
    with session:
        memory = session.batches("SELECT current_setting('memory_limit') AS m").read_all()
        assert memory["m"].to_pylist() == ["1.0 GiB"]


@pytest.mark.parametrize("where", ["first", "later"])
def test_a_missing_file_is_named_with_a_way_out(tmp_path: Path, where: str) -> None:
    table = local(tmp_path, "a int")
    table.add([{"a": 1}])
    table.add([{"a": 2}])
    lost = table.files[0 if where == "first" else 1].path
    (tmp_path / "t" / lost).unlink()

    with pytest.raises(ObjectMissing, match=re.escape(lost)) as caught:
        by_duckdb(table.storage, table.plan())

    assert "lakebed check" in caught.value.hint


def test_errors_of_our_reader_come_back_as_they_were() -> None:
    storage = MemoryStorage("lost")
    table = local(Path("unused"), "a int")
    table.storage = storage
    table.add([{"a": 1}])
    storage.delete(f"t/{table.files[0].path}")

    with pytest.raises(ObjectMissing, match="is missing"):
        by_duckdb(storage, table.plan())


def test_explain_shows_no_bits(tmp_path: Path) -> None:
    table = local(tmp_path, "a int")
    table.add([{"a": n} for n in range(20_000)])

    with Session(table.storage, LIMITS) as session:
        session.bind_plan("t", table.plan(deleted={0: range(0, 20_000, 3)}))
        for verb in ("EXPLAIN", "EXPLAIN ANALYZE"):
            shown = session.batches(f"{verb} SELECT * FROM t").read_all()["explain_value"]
            assert len(str(shown.to_pylist())) < 20_000
        counted = session.batches("SELECT count(*) AS n FROM t").read_all()

        assert counted.to_pylist() == [{"n": 20_000 - 6_667}]


def test_parsing_runs_nothing_and_leaves_roots_open(tmp_path: Path) -> None:
    table = local(tmp_path, "a int")
    table.add([{"a": 1}])

    with Session(table.storage, LIMITS) as session:
        assert '"error":false' in session.parsed("SELECT a + 1")
        assert '"error":true' in session.parsed("SELECT a +")
        session.bind_plan("t", table.plan())
        shown = session.batches("EXPLAIN SELECT * FROM t").read_all()["explain_value"]

        assert "READ_PARQUET" in shown.to_pylist()[0]
