"""A process is killed at every named step of every kind of change; the lake is whole afterwards."""

import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

import lakebed
from lakebed.meta.migrate import known_migrations
from tests.faults.conftest import Ended, Place
from tests.faults.driver import BIG, rows
from tests.faults.health import assert_healthy, digests, lake_ids

SOURCE = Path(__file__).parents[2] / "src"
Driver = Callable[..., Ended]

COMMIT = ("commit_after_lock", "commit_after_rows", "commit_after_sql")
DELTA = ("publish_delta_after_vectors", "publish_delta_after_put")
VECTORS = ("publish_iceberg_after_vectors",)
ICEBERG = (
    "publish_iceberg_after_manifest",
    "publish_iceberg_after_list",
    "publish_iceberg_after_metadata",
)
MARK = ("publish_before_mark", "publish_after_mark")
WRITE = ("write_after_files", *COMMIT, *DELTA, *ICEBERG, *MARK)
STEPS = {
    "append": WRITE,
    "follow": (*DELTA, *ICEBERG, *MARK),
    "overwrite": WRITE,
    "delete": (*COMMIT, *DELTA, *VECTORS, *ICEBERG, *MARK),
    "changes": ("publish_delta_after_changes", *DELTA, *MARK),
    "rewrite": ("rowops_after_files", *COMMIT, *DELTA, *ICEBERG, *MARK),
    "refs": ("ref_after_sql", "publish_iceberg_after_metadata", *MARK),
    "branch": (*COMMIT, *ICEBERG, *MARK),
    "forward": (*COMMIT, *DELTA, "publish_iceberg_after_metadata", *MARK),
    "restore": (*COMMIT, *DELTA, *ICEBERG, *MARK),
    "transaction": WRITE,
    "pipeline_run": ("run_before_commit", *COMMIT, *DELTA, *ICEBERG, *MARK),
    "create": WRITE,
    "start_delta": (
        *COMMIT,
        *DELTA,
        "publish_delta_after_checkpoint",
        "publish_iceberg_after_metadata",  # no file changes: no snapshot
        *MARK,
    ),
    "start_iceberg": (*COMMIT, *DELTA, *ICEBERG, *MARK),
    "checkpoint": ("publish_delta_after_checkpoint",),
    "index": ("index_after_rows", "index_after_write"),
    "drop": ("drop_after_sql", "purge_before_marker", "purge_after_files"),
    "open": ("open_after_file", "open_after_migrations", "open_after_row"),
    "upgrade": ("upgrade_after_copy", "in the migration"),
}
NOT_YET_COMMITTED = (
    "write_after_files",
    "rowops_after_files",
    "run_before_commit",
    "commit_after_lock",
    "commit_after_rows",
)
KILLED = Ended(-signal.SIGKILL, "")
BASE = {"a.left": [0, 1, 2], "a.right": [0, 1, 2]}
AFTER: dict[str, dict[str, list[int]]] = {
    "append": {"a.left": [0, 1, 2, 10, 11]},
    "follow": {"a.left": [0, 1, 2, 10, 11]},
    "overwrite": {"a.left": [20]},
    "delete": {"c.big": list(range(0, BIG, 2))},
    "changes": {"c.told": [0, 2]},
    "rewrite": {"a.left": [0, 2]},
    "refs": {},
    "branch": {},
    "forward": {"a.left": [0, 1, 2, 50]},
    "restore": {"a.left": []},
    "transaction": {"a.left": [0, 1, 2, 30], "a.right": [0, 1, 2, 30]},
    "pipeline_run": {"a.right": [0, 1, 2, 60], "b.made": [61]},
    "create": {"b.new": [40, 41]},
    "start_delta": {"c.iceberg": [0]},
    "start_iceberg": {"c.delta": [0]},
    "checkpoint": {"c.often": [1]},
    "index": {},
}
CASES = [(job, step) for job in AFTER for step in STEPS[job]]


def test_every_crash_point_of_the_source_is_tested() -> None:
    text = "".join(path.read_text() for path in SOURCE.rglob("*.py"))
    named = set(re.findall(r'crash_point\(\s*"(\w+)"', text))

    assert len(re.findall(r"crash_point\((?!name)", text)) == len(
        re.findall(r'crash_point\(\s*"\w+"', text)
    ), "a crash point has no literal name"
    assert named == {s for steps in STEPS.values() for s in steps} - {"in the migration"}


@pytest.mark.parametrize(("job", "step"), CASES, ids=[f"{j}-{s}" for j, s in CASES])
def test_killed_at_a_step_the_lake_is_in_the_old_state_or_the_new_one(
    place: Place, driver: Driver, job: str, step: str
) -> None:
    ended = driver(place, job, step)
    assert ended == KILLED
    written = digests(place.warehouse)

    with place.open() as lake:
        start = {"start_delta": "c.iceberg", "start_iceberg": "c.delta"}.get(job)
        before = BASE | ({start: [0]} if start else {})
        if job == "delete":
            before |= {"c.big": list(range(BIG))}
        if job == "changes":
            before |= {"c.told": [0, 1, 2]}
        expected = before if step in NOT_YET_COMMITTED else before | AFTER[job]
        assert_healthy(lake, expected)
        if job == "changes":
            told = deltalake.DeltaTable(lake.table("c.told").location).load_cdf(2)
            assert pa.table(told).select(["id", "_change_type"]).to_pylist() == [
                {"id": 1, "_change_type": "delete"}
            ]
        if start:
            both = ("delta", "iceberg")
            assert (lake.table(start).formats == both) is (step not in NOT_YET_COMMITTED)
        if job == "pipeline_run":
            with lake.runs.begin("p") as again:
                moved = again.cursor("b.made", "changes:a.left") is not None
            statuses = [each.status for each in lake.runs.list()]
            assert moved is (step not in NOT_YET_COMMITTED)
            assert statuses == ["running", "succeeded" if moved else "lost"]
        if job in ("refs", "branch", "forward"):
            written_to = job == "forward" or (job == "branch" and step not in NOT_YET_COMMITTED)
            shown = lake.table("a.left").scan(ref="b").to_arrow()["id"].to_pylist()
            assert sorted(shown) == [0, 1, 2, *([50] if written_to else [])]
        recovered = digests(place.warehouse)
        assert {path: recovered.get(path) for path in written} == written

        assert lake.table("a.left").append(rows(99)).published
        assert lake_ids(lake) == expected | {"a.left": [*expected["a.left"], 99]}


@pytest.mark.parametrize("step", STEPS["drop"])
def test_killed_while_dropping_the_files_go_with_the_next_process(
    place: Place, driver: Driver, step: str
) -> None:
    assert driver(place, "drop", step).code == -signal.SIGKILL

    with place.open() as lake:
        assert_healthy(lake, {"a.left": [0, 1, 2]})
        assert lake.dropped_tables() == []
        assert not (place.warehouse / "a" / "right").exists()

        lake.create_table("a.right", rows(5))
        assert_healthy(lake, {"a.left": [0, 1, 2], "a.right": [5]})


@pytest.mark.parametrize("step", STEPS["open"])
def test_killed_while_creating_a_lake_it_can_be_created_again(
    place: Place, driver: Driver, step: str
) -> None:
    no_file = step == "open_after_file" and place.kind == "postgres"
    assert driver(place, "open", step) == (Ended(0, "open") if no_file else KILLED)

    if step == "open_after_row" or no_file:
        place.open().close()
    else:
        with pytest.raises(lakebed.NotFound):
            place.open()
        warehouse = None if place.kind == "sqlite" else place.warehouse
        lakebed.init(place.uri, warehouse=warehouse).close()
    with place.open(create=True) as lake:
        lake.create_table("a.b", rows(1))
        assert_healthy(lake, {"a.b": [1]})


@pytest.mark.parametrize("step", STEPS["upgrade"])
def test_killed_while_upgrading_the_next_open_upgrades(
    sqlite_place: Place, driver: Driver, step: str
) -> None:
    with sqlite_place.open(create=True) as lake:
        lake.create_table("a.b", rows(1))
    before = schema_of(sqlite_place)
    assert driver(sqlite_place, "upgrade", step) == KILLED
    assert schema_of(sqlite_place) == before

    assert driver(sqlite_place, "upgrade") == Ended(0, "upgrade")

    assert schema_of(sqlite_place) - before == {"later", "later2"}
    newest = known_migrations()[-1].number
    copy = sqlite3.connect(Path(sqlite_place.uri, f"lakebed.db.before-{newest + 1:04d}"))
    assert copy.execute("SELECT MAX(number) FROM migrations").fetchall() == [(newest,)]
    copy.close()


def test_publishing_again_after_a_crash_gives_the_same_bytes(
    sqlite_place: Place, driver: Driver, tmp_path: Path
) -> None:
    """One committed state, published without a crash, and with one at each step of publishing."""
    folder, kept = Path(sqlite_place.uri), tmp_path / "kept"
    assert driver(sqlite_place, "transaction", "commit_after_sql").code == -signal.SIGKILL
    shutil.copytree(folder, kept)
    assert driver(sqlite_place, "publish") == Ended(0, "publish")
    reference = digests(sqlite_place.warehouse)
    assert len(reference) > len(digests(kept / "warehouse"))

    for step in (*DELTA, *ICEBERG, *MARK):
        shutil.rmtree(folder)
        shutil.copytree(kept, folder)
        assert driver(sqlite_place, "publish", step).code == -signal.SIGKILL
        assert driver(sqlite_place, "publish") == Ended(0, "publish")
        assert digests(sqlite_place.warehouse) == reference, step


def test_a_step_can_be_named_in_the_environment(sqlite_place: Place, tmp_path: Path) -> None:
    code = "import lakebed, sys; lakebed.open(sys.argv[1], create=True); print('alive')"
    environment = {"LAKEBED_CRASH_AT": "open_after_row", "PATH": ""}
    done = subprocess.run(
        [sys.executable, "-c", code, sqlite_place.uri],
        env=environment,
        capture_output=True,
        check=False,
    )

    assert (done.returncode, done.stdout) == (-signal.SIGKILL, b"")


def schema_of(place: Place) -> set[str]:
    connection = sqlite3.connect(Path(place.uri, "lakebed.db"))
    try:
        return {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    finally:
        connection.close()
