"""The command line on a lake whose rows are in PostgreSQL."""

from tests.doors.cli.command import Lakebed


def test_lake_on_postgres_is_made_filled_and_checked(lakebed: Lakebed, postgres_url: str) -> None:
    lakebed.ok("init", postgres_url, "--warehouse", lakebed.folder / "warehouse")
    in_lake = ("-l", postgres_url)

    lakebed.ok(*in_lake, "append", "a.b", lakebed.write("in.csv", "id\n1\n2\n"), "--create")

    assert lakebed.json(*in_lake, "cat", "a.b") == [{"id": 1}, {"id": 2}]
    assert lakebed.json(*in_lake, "check")["clean"] is True
    answer = lakebed.json(*in_lake, "upgrade")
    assert answer["before"] == answer["now"]
    assert (lakebed.folder / "warehouse" / "a" / "b" / "_delta_log").is_dir()


def test_lake_on_postgres_needs_a_warehouse(lakebed: Lakebed, postgres_url: str) -> None:
    answer = lakebed("init", postgres_url, "--json")

    assert answer.exit_code == 1
    assert "--warehouse" in answer.error["hint"]


def test_server_that_is_not_there_is_an_error_without_the_password(lakebed: Lakebed) -> None:
    url = "postgresql://ada:secret@127.0.0.1:1/lakes?schema=shop"

    answer = lakebed("-l", url, "table", "list", "--json")

    assert answer.exit_code == 1
    assert answer.error["code"] == "DATABASE_UNAVAILABLE"
    assert "secret" not in answer.stderr
