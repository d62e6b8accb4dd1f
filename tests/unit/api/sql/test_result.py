"""Answers: streams of bounded memory, read again once in memory, given back when closed."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lakebed import InvalidInput, Lake


def test_rows_are_a_stream_of_small_batches(lake: Lake) -> None:
    with lake.sql("SELECT range AS n FROM range(1000000)") as result:
        sizes = [batch.num_rows for batch in result.to_batches()]

    assert sum(sizes) == 1_000_000
    assert max(sizes) <= 200_000


def test_stream_of_a_huge_answer_begins_at_once(lake: Lake) -> None:
    with lake.sql("SELECT range AS n FROM range(1000000000000)") as result:
        first = next(iter(result.to_batches()))

    assert first.num_rows > 0


def test_rows_in_memory_can_be_read_again(lake: Lake) -> None:
    result = lake.sql("SELECT id FROM s.t ORDER BY id")

    assert result.to_arrow().num_rows == 3
    assert result.to_pylist() == [{"id": 1}, {"id": 2}, {"id": 3}]
    assert sum(b.num_rows for b in result.to_batches()) == 3
    assert list(result.to_pandas()["id"]) == [1, 2, 3]
    assert result.to_polars()["id"].to_list() == [1, 2, 3]


def test_stream_is_read_once(lake: Lake) -> None:
    result = lake.sql("SELECT id FROM s.t")
    list(result.to_batches())

    with pytest.raises(InvalidInput, match="read already"):
        result.to_arrow()


def test_closed_result_has_no_rows(lake: Lake) -> None:
    result = lake.sql("SELECT id FROM s.t")
    result.close()
    result.close()

    with pytest.raises(InvalidInput):
        result.to_arrow()


def test_engine_is_given_back_by_close_and_by_reading_to_the_end(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = list[bool]()
    from lakebed.engines.duckdb.session import Session

    original = Session.close

    def counted(session: Session) -> None:
        closed.append(True)
        original(session)

    monkeypatch.setattr(Session, "close", counted)

    result = lake.sql("SELECT id FROM s.t")
    assert not closed
    result.close()
    assert len(closed) == 1
    lake.sql("SELECT id FROM s.t").to_arrow()
    assert len(closed) == 2
    lake.sql("SELECT id FROM s.t")  # nobody keeps it
    assert len(closed) == 3


def test_show_prints_the_first_rows_and_reads_no_more(
    lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    with lake.sql("SELECT range AS n, NULL AS nothing FROM range(1000000000000)") as result:
        result.show(2)

    assert capsys.readouterr().out == "n  nothing\n-  -------\n0  NULL\n1  NULL\n… and more rows\n"


def test_rows_shown_can_be_read_after(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    result = lake.sql("SELECT id FROM s.t ORDER BY id")
    result.show(1)
    result.show()

    assert result.to_arrow().num_rows == 3
    assert capsys.readouterr().out.count("more rows") == 1


def test_values_cannot_command_a_terminal(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    lake.sql("SELECT chr(27) || '[31m' AS red, 'a' || chr(10) || 'b' AS lines").show()

    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "a\\nb" in out


def test_two_columns_of_one_name_are_kept_or_refused(lake: Lake) -> None:
    result = lake.sql("SELECT 1 AS a, 2 AS a")

    assert [c.to_pylist() for c in result.to_arrow().columns] == [[1], [2]]
    result.show()
    for read in (result.to_pylist, result.to_polars):
        with pytest.raises(InvalidInput, match="two columns"):
            read()


LONG = (
    "SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b",
    "SELECT max(range) FROM range(1000000000000)",
    "CREATE TABLE s.u AS SELECT range AS n FROM range(1000000000000) ORDER BY hash(range)",
    "DELETE FROM s.t WHERE id < (SELECT max(a.range) FROM range(9999999) a, range(9999999) b)",
)


@pytest.fixture
def interrupted(lake: Lake, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    code = (
        "import sys, lakebed\n"
        "lake = lakebed.open(sys.argv[1])\n"
        "lake.sql('SELECT 1').to_arrow()\n"
        "for text in sys.argv[2:]:\n"
        "    print('ready', flush=True)\n"
        "    try:\n"
        "        lake.sql(text).to_arrow()\n"
        "    except KeyboardInterrupt:\n"
        "        print('stopped', flush=True)\n"
        "print(lake.sql('SELECT count(*) AS n FROM s.t').to_pylist(), lake.tables(), flush=True)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "lake"), *LONG]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def test_ctrl_c_stops_a_long_statement_and_the_lake_goes_on(
    lake: Lake, interrupted: subprocess.Popen[str], tmp_path: Path
) -> None:
    assert interrupted.stdout is not None
    for _ in LONG:
        assert interrupted.stdout.readline() == "ready\n"
        time.sleep(0.7)
        begun = time.monotonic()
        interrupted.send_signal(signal.SIGINT)
        assert interrupted.stdout.readline() == "stopped\n"
        assert time.monotonic() - begun < 15
    assert interrupted.stdout.readline() == "[{'n': 3}] ['s.t']\n"
    assert interrupted.wait(30) == 0
    assert lake.check().clean
