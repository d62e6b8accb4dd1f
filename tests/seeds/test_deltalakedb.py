"""deltalakedb's points (DL-…), for the part that is built; docs/seeds.md lists them all."""

import threading
from pathlib import Path
from typing import Any

import deltalake
import orjson
import pytest

import lakebed
from lakebed.core.outbox import Outbox
from lakebed.model.errors import DatabaseUnavailable, StorageFull
from lakebed.model.settings import BY_NAME
from lakebed.storage.local import LocalStorage


def log_of(table: lakebed.Table) -> Path:
    return Path(table.location) / "_delta_log"


def commits_of(table: lakebed.Table) -> list[str]:
    return sorted(p.name for p in log_of(table).glob("*.json"))


def lines_of(table: lakebed.Table, version: int) -> list[dict[str, Any]]:
    text = (log_of(table) / f"{version:020}.json").read_text("utf-8")
    assert text.endswith("\n")
    return [orjson.loads(line) for line in text.splitlines()]


def row(n: int) -> list[dict[str, Any]]:
    return [{"id": n, "name": f"n{n}", "amount": None}]


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """While a table's folder is in the set, nothing can be put into its log."""
    folders: set[str] = set()
    put = LocalStorage.put_if_absent

    def fail(self: LocalStorage, path: str, data: bytes, **named: Any) -> bool:
        if any(path.startswith(f"{folder}/_delta_log/") for folder in folders):
            raise StorageFull("no room", hint="make some")
        return put(self, path, data, **named)

    monkeypatch.setattr(LocalStorage, "put_if_absent", fail)
    return folders


def test_dl_10_rows_first_then_the_log_and_no_log_without_rows(
    lake: lakebed.Lake, orders: lakebed.Table
) -> None:
    with pytest.raises(ZeroDivisionError), lake.transaction() as tx:  # noqa: PT012
        tx.table("sales.orders").append(row(1))
        raise ZeroDivisionError
    assert commits_of(orders) == [f"{0:020}.json"]

    versions = [orders.append(row(n)).version for n in (1, 2)]

    assert versions == [1, 2]
    assert commits_of(orders) == [f"{n:020}.json" for n in range(3)]


def test_dl_11_the_loser_gets_a_conflict_and_succeeds_on_a_fresh_look(
    lake: lakebed.Lake, orders: lakebed.Table
) -> None:
    orders.append(row(1))
    late = lake.transaction()
    late.table("sales.orders").overwrite(row(2))
    orders.overwrite(row(3))

    with pytest.raises(
        lakebed.CommitConflict, match=r"sales\.orders.*version 1.*version 2"
    ) as lost:
        late.commit()
    with lake.transaction() as again:
        again.table("sales.orders").overwrite(row(2))

    assert lost.value.retryable
    assert lost.value.context["table"] == "sales.orders"
    assert orders.to_arrow().to_pylist() == row(2)


def test_dl_12_the_same_application_transaction_adds_nothing(orders: lakebed.Table) -> None:
    first = orders.append(row(1), txn=("loader", 7))

    again = orders.append(row(1), txn=("loader", 7))
    older = orders.append(row(1), txn=("loader", 6))
    newer = orders.append(row(2), txn=("loader", 8))

    assert (again.replayed, again.version) == (True, first.version)
    assert (older.replayed, older.version) == (True, first.version)
    assert (newer.replayed, newer.version) == (False, 2)
    assert orders.row_count == 2
    assert deltalake.DeltaTable(orders.location).transaction_version("loader") == 8


def test_dl_20_commits_and_checkpoints_have_delta_names(
    lake: lakebed.Lake, orders: lakebed.Table
) -> None:
    for n in range(12):
        orders.append(row(n))
    assert lake._parts.worker.wait(20)

    names = {p.name for p in log_of(orders).iterdir()}
    checkpoint = orjson.loads((log_of(orders) / "_last_checkpoint").read_bytes())

    assert {f"{n:020}.json" for n in range(13)} <= names
    assert f"{10:020}.checkpoint.parquet" in names
    assert checkpoint["version"] == 10
    assert [n for n in names if n.endswith(".checkpoint.parquet")] == [
        f"{10:020}.checkpoint.parquet"
    ]


def test_dl_21_actions_are_in_order_without_nulls(orders: lakebed.Table) -> None:
    orders.append([{"id": 1, "name": "größe", "amount": 0.5}], txn=("loader", 1))
    orders.overwrite(row(2), message="why")

    created, appended, replaced = (lines_of(orders, v) for v in range(3))

    assert [next(iter(line)) for line in created] == ["commitInfo", "protocol", "metaData"]
    assert [next(iter(line)) for line in appended] == ["commitInfo", "txn", "add"]
    assert [next(iter(line)) for line in replaced] == ["commitInfo", "add", "remove"]
    for line in (*created, *appended, *replaced):
        assert not any(value is None for value in next(iter(line.values())).values())
    assert isinstance(appended[2]["add"]["modificationTime"], int)
    assert isinstance(created[2]["metaData"]["createdTime"], int)
    assert "größe" in (log_of(orders) / f"{1:020}.json").read_text("utf-8")


def test_dl_22_what_stands_there_is_compared_never_overwritten(
    lake: lakebed.Lake, orders: lakebed.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = log_of(orders) / f"{1:020}.json"
    path.write_text('{"commitInfo": {"operation": "WRITE", "timestamp": 1}}\n')

    with pytest.warns(lakebed.PublishWarning, match="FOREIGN_COMMIT"):
        commit = orders.append(row(1))

    assert not commit.published
    assert path.read_text().startswith('{"commitInfo": {"operation"')
    assert lake.status().stopped
    path.unlink()
    assert lake.publish().lags == ()
    ours = path.read_bytes()
    again = lake.create_table("sales.again", "id long")
    with monkeypatch.context() as patched:
        patched.setattr(Outbox, "finish", lambda *_, **__: None)  # written, and not recorded
        again.append([{"id": 1}])
    written = (log_of(again) / f"{1:020}.json").read_bytes()
    assert lake.publish().lags == ()
    assert (log_of(again) / f"{1:020}.json").read_bytes() == written
    assert path.read_bytes() == ours


def test_dl_23_versions_are_published_in_order_and_tables_by_themselves(
    lake: lakebed.Lake, orders: lakebed.Table, broken: set[str]
) -> None:
    lines = lake.create_table("sales.lines", "id long")
    broken.add("sales/orders")
    with pytest.warns(lakebed.PublishWarning):
        orders.append(row(1))
    with pytest.warns(lakebed.PublishWarning):
        orders.append(row(2))
    lines.append([{"id": 1}])

    assert commits_of(lines) == [f"{n:020}.json" for n in range(2)]
    assert commits_of(orders) == [f"{0:020}.json"]
    (lag,) = lake.status().lags
    assert (lag.table, lag.format, lag.from_version, lag.to_version) == (
        "sales.orders",
        "delta",
        1,
        2,
    )
    assert [c.published for c in orders.history()] == [False, False, True]


def test_dl_24_a_failed_publication_never_undoes_the_commit(
    lake: lakebed.Lake, orders: lakebed.Table, broken: set[str]
) -> None:
    broken.add("sales/orders")

    with pytest.warns(lakebed.PublishWarning, match="no room"):
        commit = orders.append(row(1))

    assert (commit.version, commit.published) == (1, False)
    assert commit.reason is not None
    assert "STORAGE_FULL" in commit.reason
    assert orders.to_arrow().to_pylist() == row(1)
    (lag,) = lake.publish().lags
    assert lag.attempts >= 2
    broken.clear()
    assert lake.publish().lags == ()
    assert deltalake.DeltaTable(orders.location).version() == 1


def test_dl_25_a_publication_cut_short_converges(
    lake: lakebed.Lake, orders: lakebed.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(*_: object, **__: object) -> None:
        raise DatabaseUnavailable("gone", hint="")

    with monkeypatch.context() as patched:
        patched.setattr(Outbox, "finish", lost)
        with pytest.warns(lakebed.PublishWarning):
            orders.append(row(1))
    hints = ("version-hint.text", "_last_checkpoint")  # the only files that are ever replaced
    files = [p for p in Path(orders.location).rglob("*") if p.is_file() and p.name not in hints]
    written = {p: p.read_bytes() for p in files}
    assert log_of(orders) / f"{1:020}.json" in written

    assert lake.publish().lags == ()

    assert {p: p.read_bytes() for p in written} == written
    assert deltalake.DeltaTable(orders.location).to_pyarrow_table().num_rows == 1
    assert lake.check().clean


def test_dl_26_a_checkpoint_and_what_follows_equal_the_whole_log(
    lake: lakebed.Lake, orders: lakebed.Table
) -> None:
    for n in range(8):
        orders.append(row(n), txn=("loader", n))
    orders.overwrite([*row(100), *row(101)])
    orders.append(row(102))
    orders.append(row(103))
    assert lake._parts.worker.wait(20)
    whole = deltalake.DeltaTable(orders.location)
    before = (sorted(whole.file_uris()), whole.schema(), whole.transaction_version("loader"))

    for n in range(10):
        (log_of(orders) / f"{n:020}.json").unlink()
    short = deltalake.DeltaTable(orders.location)

    assert short.version() == 11
    assert (
        sorted(short.file_uris()),
        short.schema(),
        short.transaction_version("loader"),
    ) == before
    assert sorted(short.to_pyarrow_table()["id"].to_pylist()) == [100, 101, 102, 103]


def test_dl_30_several_tables_advance_together_or_not_at_all(
    lake: lakebed.Lake, orders: lakebed.Table
) -> None:
    lines = lake.create_table("sales.lines", "id long")
    with lake.transaction() as tx:
        tx.table("sales.orders").append(row(1))
        tx.table("sales.lines").append([{"id": 1}])
    assert {name: c.version for name, c in tx.commits.items()} == {
        "sales.orders": 1,
        "sales.lines": 1,
    }
    assert len({(c.transaction_id, c.time_ms) for c in tx.commits.values()}) == 1
    late = lake.transaction()
    late.table("sales.orders").append(row(2))
    late.table("sales.lines").overwrite([{"id": 2}])
    lines.overwrite([{"id": 3}])

    with pytest.raises(lakebed.CommitConflict) as lost:
        late.commit()

    assert lost.value.context["table"] == "sales.lines"
    assert (orders.version, lines.version) == (1, 2)


def test_dl_31_commits_over_the_same_tables_never_deadlock(
    postgres_url: str, tmp_path: Path
) -> None:
    """In either order: locks are taken in the order of the tables' ids."""
    names = ["a.t", "a.u", "a.v"]
    with lakebed.open(postgres_url, create=True, warehouse=tmp_path / "w") as lake:
        for name in names:
            lake.create_table(name, "id long")
        handles = [lakebed.open(postgres_url) for _ in range(3)]

        def write(handle: lakebed.Lake, order: list[str]) -> None:
            for n in range(5):
                with handle.transaction(publish="background") as tx:
                    for name in order:
                        tx.table(name).append([{"id": n}])

        orders = [names, names[::-1], names[1:] + names[:1]]
        threads = [
            threading.Thread(target=write, args=pair) for pair in zip(handles, orders, strict=True)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        for handle in handles:
            handle.close()

        assert [lake.table(name).row_count for name in names] == [15, 15, 15]
        assert lake.publish().lags == ()
        assert lake.check().clean


def test_dl_32_the_status_names_a_commit_that_readers_see_in_part(
    lake: lakebed.Lake, orders: lakebed.Table, broken: set[str]
) -> None:
    lake.create_table("sales.lines", "id long")
    broken.add("sales/orders")

    with pytest.warns(lakebed.PublishWarning), lake.transaction() as tx:  # noqa: PT031
        tx.table("sales.orders").append(row(1))
        tx.table("sales.lines").append([{"id": 1}])

    (split,) = lake.status().split_commits
    assert split.transaction_id == tx.commits["sales.orders"].transaction_id
    assert (split.published, split.waiting) == (("sales.lines",), ("sales.orders",))
    broken.clear()
    assert lake.publish().split_commits == ()


def test_dl_33_a_block_commits_at_its_end_and_rolls_back_when_it_raises(
    lake: lakebed.Lake, orders: lakebed.Table
) -> None:
    with lake.transaction() as tx:
        tx.table("sales.orders").append(row(1))
        assert orders.row_count == 0
    with pytest.raises(ZeroDivisionError), lake.transaction() as tx:  # noqa: PT012
        tx.table("sales.orders").append(row(2))
        raise ZeroDivisionError
    tx = lake.transaction()
    tx.table("sales.orders").append(row(3))
    tx.rollback()
    with pytest.raises(lakebed.CommitError, match="over"):
        tx.commit()

    assert orders.to_arrow().to_pylist() == row(1)
    assert len(list(Path(orders.location).glob("data/*.parquet"))) == 1


@pytest.mark.slow
def test_dl_34_a_transaction_has_no_small_limit(lake: lakebed.Lake) -> None:
    """More tables and more files than the documents' limits (10 tables, 1,000 files)."""
    names = [f"many.t{n}" for n in range(12)]
    for name in names:
        lake.create_table(name, "id long", partition_by=["id"], formats=["iceberg"])

    with lake.transaction(publish="background") as tx:
        for name in names:
            count = 1001 if name == names[0] else 1
            tx.table(name).append([{"id": n} for n in range(count)])

    assert len(tx.commits) == 12
    assert len(lake.table(names[0]).files()) == 1001
    assert lake.publish().lags == ()


def test_dl_51_every_key_has_a_setting_and_the_interval_counts(lake: lakebed.Lake) -> None:
    wanted = {
        "mirror.checkpoint_interval": ("publish.delta.checkpoint-interval", 10),
        "mirror.retry_backoff_base": ("publish.retry.base-s", 1.0),
        "concurrency.retries": ("commit.retries", 5),
        "timeout": ("database.timeout-s", 30.0),
        "pool_size": ("database.pool-size", 10),
    }
    defaults = {row.setting.name: row.value for row in lake.settings()}
    assert {key: defaults[ours] for key, (ours, _) in wanted.items()} == {
        key: default for key, (_, default) in wanted.items()
    }
    assert all(BY_NAME[ours].help for ours, _ in wanted.values())
    table = lake.create_table(
        "a.t", "id long", properties={"publish.delta.checkpoint-interval": "3"}
    )
    for n in range(4):
        table.append([{"id": n}])
    assert lake._parts.worker.wait(20)
    assert [p.name for p in log_of(table).glob("*.checkpoint.parquet")] == [
        f"{3:020}.checkpoint.parquet"
    ]


def test_dl_53_no_secret_in_errors_or_uris() -> None:
    url = "postgresql://someone:hunter2@127.0.0.1:1/nowhere?connect_timeout=2&sslmode=disable"

    with pytest.raises(lakebed.DatabaseError) as refused:
        lakebed.open(url)

    told = " ".join([str(refused.value), refused.value.hint, repr(refused.value.context)])
    assert "hunter2" not in told
