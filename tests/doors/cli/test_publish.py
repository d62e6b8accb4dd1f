"""lakebed publish and lakebed status: published, late, stopped."""

import shutil
from pathlib import Path

import pytest

from tests.doors.cli.command import Lakebed
from tests.stores import new_bucket


def delta_log(lake: Lakebed) -> Path:
    return Path(lake.json("table", "show", "sales.orders")["location"]) / "_delta_log"


def break_delta(lake: Lakebed) -> Path:
    """Put a file where the log's folder was, so that publishing fails for a while."""
    log = delta_log(lake)
    log.rename(log.with_name("aside"))
    log.write_text("not a folder")
    return log


def mend_delta(log: Path) -> None:
    log.unlink()
    log.with_name("aside").rename(log)


def test_everything_published_exits_0(orders: Lakebed) -> None:
    status = orders.json("status")

    assert status == {
        "stopped": False,
        "lagging": False,
        "warn_s": 5.0,
        "versions_behind": 0,
        "lag_s": 0.0,
        "waiting": [],
        "split_commits": [],
        "cache": None,
    }
    assert orders.json("publish") == status
    assert "everything is published" in orders.ok("publish", "sales.orders").stderr


def test_failed_publication_warns_and_the_commit_stands(orders: Lakebed) -> None:
    break_delta(orders)

    answer = orders("append", "sales.orders", "orders.csv")

    assert answer.exit_code == 0
    assert answer.stderr.startswith(
        "warning: sales.orders version 2 is committed but not published"
    )
    assert len(orders.rows("sales.orders")) == 6
    assert orders.json("history", "sales.orders")[0]["published"] is False


def test_late_publication_exits_3_until_it_is_published(
    orders: Lakebed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKEBED_PUBLISH_LAG_WARN_S", "0")
    log = break_delta(orders)
    orders("append", "sales.orders", "orders.csv")

    late = orders("status", "--json")
    tried = orders("publish", "sales.orders", "--json")
    mend_delta(log)
    mended = orders("publish")

    assert late.exit_code == 3
    assert (late.json["lagging"], late.json["stopped"]) == (True, False)
    assert late.json["waiting"][0]["table"] == "sales.orders"
    assert late.json["waiting"][0]["format"] == "delta"
    assert tried.exit_code == 3
    assert mended.exit_code == 0
    assert (log / f"{2:020}.json").is_file()
    assert orders("status").exit_code == 0


def test_foreign_commit_stops_publication_and_exits_2(orders: Lakebed) -> None:
    foreign = delta_log(orders) / f"{2:020}.json"
    foreign.write_text('{"commitInfo": {}}\n')

    written = orders("append", "sales.orders", "orders.csv")
    status = orders("status", "--json")
    shown = orders("status")
    again = orders("publish")

    assert written.exit_code == 0
    assert "FOREIGN_COMMIT" in written.stderr
    assert (status.exit_code, status.json["stopped"]) == (2, True)
    assert shown.exit_code == again.exit_code == 2
    assert "sales.orders" in shown.stdout
    assert foreign.read_text() == '{"commitInfo": {}}\n'


def test_publication_in_the_background_is_done_before_the_program_ends(orders: Lakebed) -> None:
    commit = orders.json("append", "sales.orders", "orders.csv", "--publish", "background")

    assert commit["published"] is False
    assert (delta_log(orders) / f"{2:020}.json").is_file()
    assert orders.json("status")["waiting"] == []


def test_publish_of_an_unknown_table_is_an_error(orders: Lakebed) -> None:
    assert orders("publish", "a.b", "--json").error["code"] == "TABLE_NOT_FOUND"


def test_table_folder_that_is_gone_is_not_a_defect(orders: Lakebed) -> None:
    shutil.rmtree(delta_log(orders).parent)

    answer = orders("cat", "sales.orders", "--json")

    assert answer.exit_code == 1
    assert answer.error["code"] == "OBJECT_MISSING"


@pytest.mark.objects
def test_status_tells_how_full_the_cache_is(
    lakebed: Lakebed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bucket = new_bucket()
    for name, value in bucket.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("LAKEBED_CACHE_DIR", str(tmp_path / "blocks"))
    monkeypatch.setenv("LAKEBED_CACHE_SIZE", "1MB")
    lakebed.ok("init", ".", "--warehouse", bucket.uri)
    lakebed.ok("sql", "CREATE NAMESPACE shop")
    lakebed.ok("sql", "CREATE TABLE shop.t AS SELECT 1 AS id")
    assert lakebed.json("status")["cache"]["used_bytes"] == 0
    assert not (tmp_path / "blocks").exists()

    lakebed.ok("sql", "SELECT * FROM shop.t")

    cache = lakebed.json("status")["cache"]
    assert (cache["folder"], cache["limit_bytes"]) == (str(tmp_path / "blocks"), 1_000_000)
    assert 0 < cache["used_bytes"] < 50_000
    assert f"cache: {cache['used_bytes']} of 1000000 bytes" in lakebed.ok("status").stderr
