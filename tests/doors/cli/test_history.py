"""lakebed history and lakebed files."""

from pathlib import Path

from tests.doors.cli.command import Lakebed


def test_history_lists_the_newest_commit_first(orders: Lakebed) -> None:
    orders.ok("append", "sales.orders", "orders.csv", "--message", "more")

    commits = orders.json("history", "sales.orders")

    assert [c["version"] for c in commits] == [2, 1, 0]
    assert [c["operation"] for c in commits] == ["append", "append", "create"]
    assert [c["added_rows"] for c in commits] == [3, 3, 0]
    assert commits[0]["message"] == "more"
    assert all(c["published"] and c["reason"] is None for c in commits)
    assert set(commits[0]) >= {"table", "time", "author", "transaction_id", "summary"}


def test_history_is_a_table_for_people(orders: Lakebed) -> None:
    lines = orders.ok("history", "sales.orders", "--limit", "1").stdout.splitlines()

    assert lines[0].split()[:3] == ["version", "time", "operation"]
    assert lines[1].split()[0] == "1"
    assert len(lines) == 2


def test_files_are_listed_with_partitions_people_can_read(lake: Lakebed) -> None:
    lake.ok("table", "create", "a.b", "id long, day date", "--partition-by", "day")
    lake.ok("append", "a.b", lake.write("1.csv", "id,day\n1,2024-02-29\n2,2024-03-01\n3,\n"))

    entries = lake.json("files", "a.b")

    location = Path(lake.json("table", "show", "a.b")["location"])
    days = sorted((e["partition"]["day"] or "", e["rows"]) for e in entries)
    assert days == [("", 1), ("2024-02-29", 1), ("2024-03-01", 1)]
    assert all((location / e["path"]).stat().st_size == e["size_bytes"] for e in entries)
    assert {e["added_version"] for e in entries} == {1}


def test_files_of_an_older_version(orders: Lakebed) -> None:
    orders.ok("append", "sales.orders", "orders.csv")

    assert len(orders.json("files", "sales.orders")) == 2
    assert len(orders.json("files", "sales.orders", "--version", "1")) == 1
    assert orders.json("files", "sales.orders", "--version", "0") == []


def test_unknown_table_gets_a_suggestion(orders: Lakebed) -> None:
    for command in ("history", "files", "cat"):
        answer = orders(command, "sales.order")

        assert answer.exit_code == 1
        assert "did you mean sales.orders?" in answer.stderr
