"""lakebed check, with and without repair."""

from pathlib import Path

from tests.doors.cli.command import Lakebed


def location(lake: Lakebed) -> Path:
    return Path(lake.json("table", "show", "sales.orders")["location"])


def test_whole_lake_is_clean(orders: Lakebed) -> None:
    assert orders.json("check") == {
        "clean": True,
        "tables": 1,
        "files": 1,
        "findings": [],
        "notes": [],
        "repaired": [],
    }
    assert orders.ok("check", "sales.orders").stderr == "1 table, 1 data file: nothing is wrong\n"


def test_missing_data_file_is_a_finding(orders: Lakebed) -> None:
    (entry,) = orders.json("files", "sales.orders")
    (location(orders) / entry["path"]).unlink()

    answer = orders("check", "--json")
    told = orders("check")

    assert answer.exit_code == told.exit_code == 2
    assert answer.json["clean"] is False
    assert {f["path"] for f in answer.json["findings"]} == {entry["path"]}
    assert entry["path"] in told.stdout


def test_repair_publishes_anew_what_was_damaged(orders: Lakebed) -> None:
    log = location(orders) / "_delta_log" / f"{1:020}.json"
    log.write_text("{}")

    found = orders("check", "--json")
    repaired = orders("check", "--repair", "--json")

    assert found.exit_code == 2
    assert {f["format"] for f in found.json["findings"]} == {"delta"}
    assert repaired.exit_code == 0
    assert repaired.json["repaired"] == ["sales.orders"]
    assert orders("check").exit_code == 0
    assert len(orders.rows("sales.orders")) == 3


def test_orphan_is_a_note_not_a_finding(orders: Lakebed) -> None:
    (location(orders) / "data" / "left-behind.parquet").write_bytes(b"x")

    answer = orders("check")

    assert answer.exit_code == 0
    assert "left-behind.parquet" in answer.stderr


def test_unknown_table_is_an_error(orders: Lakebed) -> None:
    assert orders("check", "a.b").exit_code == 1
