"""`lakebed publish --follow`: several at once, killed, ended, and with the database away."""

import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

import lakebed
from lakebed.formats import lag
from lakebed.formats.follower import Turn
from tests.faults.conftest import Place
from tests.faults.driver import SCHEMA, rows
from tests.faults.health import assert_healthy
from tests.faults.proxy import Proxy

SERVICE = {"publish.mode": "service"}
PATIENCE_S = 120


@contextmanager
def following(
    uri: str, *, crash_at: str = "", count: int = 1
) -> Iterator[Sequence["subprocess.Popen[str]"]]:
    """Programs that follow a lake, ended whatever happens."""
    environment = {**os.environ, "LAKEBED_CRASH_AT": crash_at}
    command = [sys.executable, "-m", "lakebed", "-l", uri, "publish", "--follow", "--json"]
    started = [
        subprocess.Popen([*command, "--every", "0.05"], stdout=subprocess.PIPE, text=True, env=env)
        for env in [environment] * count
    ]
    try:
        yield started
    finally:
        for process in started:
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()


def wait_until(reached: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not reached():
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.02)


def is_following(process: "subprocess.Popen[str]") -> bool:
    assert process.stdout is not None
    return bool(json.loads(process.stdout.readline())["event"] == "following")


def is_published(lake: lakebed.Lake) -> bool:
    return lake.status().lags == ()


def test_two_followers_of_one_lake_publish_everything_once_and_end_when_told(place: Place) -> None:
    with place.open(create=True, publish__mode="service") as lake:
        tables = [lake.create_table(name, SCHEMA) for name in ("a.t", "a.u")]
        with following(place.uri, count=2) as (first, second):
            assert is_following(first)
            assert is_following(second)
            for n in range(8):
                commits = [table.append(rows(n)) for table in tables]
                assert not any(commit.published for commit in commits)
            wait_until(lambda: is_published(lake))
            first.send_signal(signal.SIGTERM)
            second.send_signal(signal.SIGINT)
            told = [p.communicate(timeout=PATIENCE_S)[0].splitlines() for p in (first, second)]
            codes = (first.returncode, second.returncode)

        events = [json.loads(line) for lines in told for line in lines]
        published = sum(e["publications"] for e in events if e["event"] == "published")
        assert codes == (0, 130)
        assert [json.loads(lines[-1])["event"] for lines in told] == ["ended", "ended"]
        assert published > 0, "what was there before them their processes may publish on opening"
        assert_healthy(lake, {"a.t": list(range(8)), "a.u": list(range(8))})


def test_a_follower_goes_on_where_one_was_killed(place: Place) -> None:
    with place.open(create=True, publish__mode="service") as lake:
        table = lake.create_table("a.t", SCHEMA)
        for n in range(3):
            table.append(rows(n))
        with following(place.uri, crash_at="publish_iceberg_after_metadata") as (killed,):
            assert killed.wait(PATIENCE_S) == -signal.SIGKILL
        assert lake.status().backlog.versions == 4
        with following(place.uri) as (again,):
            assert is_following(again)
            wait_until(lambda: is_published(lake))
            again.send_signal(signal.SIGTERM)
            assert again.wait(PATIENCE_S) == 0

        assert_healthy(lake, {"a.t": [0, 1, 2]})


def test_a_follower_waits_for_a_database_that_is_away(postgres_url: str, tmp_path: Path) -> None:
    proxy, stop = Proxy(postgres_url), threading.Event()
    turns: list[Turn] = []
    short = {**SERVICE, "database.timeout-s": 3}
    try:
        with (
            lakebed.open(postgres_url, create=True, warehouse=tmp_path, settings=short) as lake,
            lakebed.open(proxy.url, settings=short) as followed,
        ):
            table = lake.create_table("a.t", SCHEMA)
            thread = threading.Thread(
                target=lambda: followed.follow_publishing(stop, every_s=0.05, tell=turns.append)
            )
            thread.start()
            wait_until(lambda: is_published(lake))
            address, proxy._target = proxy._target, ("127.0.0.1", 1)
            proxy.drop_all()
            table.append(rows(1))
            wait_until(lambda: any(turn.error is not None for turn in turns))
            proxy._target = address
            wait_until(lambda: is_published(lake))
            stop.set()
            thread.join(PATIENCE_S)

            codes = {turn.error.code for turn in turns if turn.error is not None}
            assert codes == {"DATABASE_UNAVAILABLE"}
            assert all(turn.retry_s > 0 for turn in turns if turn.error is not None)
            assert_healthy(lake, {"a.t": [1]})
    finally:
        stop.set()
        proxy.close()


def test_lag_is_a_number_and_too_much_of_it_is_told_once(
    sqlite_place: Place, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lag, "_LOOK_S", 0.0)
    caplog.set_level(logging.INFO, "lakebed.publish")
    with sqlite_place.open(create=True, publish__mode="service", publish__lag_warn_s=0) as lake:
        table = lake.create_table("a.t", SCHEMA)
        table.append(rows(1))
        watch = lake._parts.lag
        wait_until(lambda: lake.status().lagging)

        found = [watch.look(), watch.look()]
        status = lake.status()
        lake.publish()
        watch.look()

        assert [seen.versions for seen in found if seen] == [2, 2]
        assert status.backlog.versions == 2
        assert status.backlog.seconds == max(each.lag_s for each in status.lags) > 0
        texts = [record.getMessage() for record in caplog.records if "behind" in record.message]
        assert len(texts) == 1
        assert texts[0].startswith("publication is 2 versions and ")
        assert "publication has caught up: 0 versions wait" in caplog.text
        lags = lake.sql("SELECT format, lag_s FROM a.t$publications WHERE kind <> 'start'")
        assert all(row["lag_s"] > 0 for row in lags.to_arrow().to_pylist())
