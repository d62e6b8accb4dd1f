"""lakebed branch, tag and restore: names for versions, and the way back."""

from tests.doors.cli.command import Lakebed


def ids(lakebed: Lakebed, table: str, *options: str) -> list[int]:
    return sorted(row["id"] for row in lakebed.rows(table, *options))


def test_a_branch_is_written_checked_and_taken_by_main(orders: Lakebed) -> None:
    made = orders.json("branch", "create", "sales.orders", "audit", "--max-age", "7d")
    assert (made["name"], made["kind"], made["version"]) == ("audit", "branch", 1)
    assert made["max_age_ms"] == 7 * 86_400_000

    orders.write("more.csv", "id,name,amount\n4,Kay,1\n")
    told = orders.ok("append", "sales.orders@audit", "more.csv").stderr
    assert told == "sales.orders@audit is at version 2: 1 row added\n"
    assert ids(orders, "sales.orders") == [1, 2, 3]
    assert ids(orders, "sales.orders@audit") == ids(orders, "sales.orders", "--ref", "audit")

    commit = orders.json("branch", "fast-forward", "sales.orders", "audit", "--message", "checked")
    assert (commit["operation"], commit["version"]) == ("fast-forward", 2)
    assert ids(orders, "sales.orders") == [1, 2, 3, 4]

    orders.ok("branch", "drop", "sales.orders", "audit")
    assert [r["name"] for r in orders.json("branch", "list", "sales.orders")] == ["main"]


def test_the_history_of_a_branch_says_which_commits_are_its_own(orders: Lakebed) -> None:
    orders.ok("branch", "create", "sales.orders", "b")
    orders.ok("append", "sales.orders@b", "orders.csv")

    commits = orders.json("history", "sales.orders", "--ref", "b")

    assert [(c["version"], c["branch"]) for c in commits] == [(2, "b"), (1, "main"), (0, "main")]
    assert all(c["duration_ms"] >= 0 for c in commits)
    shown = orders.ok("history", "sales.orders@b").stdout.splitlines()
    assert shown[0].split()[:3] == ["version", "branch", "time"]
    assert len(orders.json("files", "sales.orders@b")) == 2
    assert len(orders.json("files", "sales.orders")) == 1


def test_a_tag_keeps_a_version_by_name(orders: Lakebed) -> None:
    orders.ok("tag", "create", "sales.orders", "first", "--version", "1")
    orders.ok("append", "sales.orders", "orders.csv")

    assert len(ids(orders, "sales.orders", "--ref", "first")) == 3
    assert len(ids(orders, "sales.orders@first")) == 3
    (tag,) = orders.json("tag", "list", "sales.orders")
    assert (tag["name"], tag["version"]) == ("first", 1)
    refused = orders("append", "sales.orders@first", "orders.csv", "--json")
    assert (refused.exit_code, refused.error["code"]) == (1, "INVALID_NAME")

    orders.ok("tag", "drop", "sales.orders", "first")
    assert orders.json("tag", "list", "sales.orders") == []


def test_retention_is_set_and_shown(orders: Lakebed) -> None:
    orders.ok("branch", "create", "sales.orders", "b")

    kept = orders.json(
        "branch", "retain", "sales.orders", "b", "--min-snapshots", "3", "--max-snapshot-age", "12h"
    )

    assert (kept["min_snapshots"], kept["max_snapshot_age_ms"]) == (3, 12 * 3_600_000)
    assert kept["max_age_ms"] is None


def test_restore_is_a_commit_of_its_own(orders: Lakebed) -> None:
    orders.ok("append", "sales.orders", "orders.csv", "--overwrite", "--where", "id = 1 or id <> 1")
    orders.ok("append", "sales.orders", "orders.csv")
    assert len(ids(orders, "sales.orders")) == 6

    commit = orders.json("restore", "sales.orders", "--version", "1")

    assert (commit["version"], commit["operation"]) == (4, "restore")
    assert commit["summary"]["restored_version"] == 1
    assert len(ids(orders, "sales.orders")) == 3
    assert len(ids(orders, "sales.orders", "--version", "3")) == 6
    told = orders.ok("restore", "sales.orders", "--version", "4").stderr
    assert told == "sales.orders is at version 4 already\n"


def test_wrong_usage_of_restore_and_ages_is_told(orders: Lakebed) -> None:
    assert orders("restore", "sales.orders").exit_code == 64
    assert orders("restore", "sales.orders", "--version", "0", "--ref", "x").exit_code == 64
    assert orders("branch", "create", "sales.orders", "b", "--max-age", "soon").exit_code == 64
    missing = orders("restore", "sales.orders", "--version", "9", "--json")
    assert (missing.exit_code, missing.error["code"]) == (1, "VERSION_NOT_FOUND")
    assert missing.error["hint"] == "its versions are 0 to 1"


def test_changes_are_rows_in_any_format(orders: Lakebed) -> None:
    orders.ok("append", "sales.orders", "orders.csv")

    everything = orders.json("changes", "sales.orders")
    assert [(c["id"], c["_op"], c["_version"]) for c in everything] == [
        *((i, "insert", 1) for i in (1, 2, 3)),
        *((i, "insert", 2) for i in (1, 2, 3)),
    ]
    later = orders.ok(
        "changes", "sales.orders", "--from", "1", "--columns", "id", "--where", "id > 1"
    )
    lines = [line.split() for line in later.stdout.splitlines()]
    assert lines[0] == ["id", "_op", "_version", "_time"]
    assert [line[:3] for line in lines[1:]] == [["2", "insert", "2"], ["3", "insert", "2"]]
    csv = orders.ok("changes", "sales.orders", "--to", "1", "--limit", "1", "--format", "csv")
    assert csv.stdout.splitlines()[0] == '"id","name","amount","_op","_version","_time"'
