"""lakebed init, and how a command finds its lake."""

import pytest

from tests.doors.cli.command import Lakebed


def test_init_makes_a_lake_and_says_where(lakebed: Lakebed) -> None:
    answer = lakebed("init", "shop", "--json")

    assert answer.exit_code == 0
    assert answer.json == {
        "lake": str(lakebed.folder / "shop"),
        "warehouse": (lakebed.folder / "shop" / "warehouse").as_uri(),
    }
    assert (lakebed.folder / "shop" / "lakebed.db").is_file()


def test_init_answers_people_on_stderr_only(lakebed: Lakebed) -> None:
    answer = lakebed.ok("init", "shop")

    assert answer.stdout == ""
    assert "shop" in answer.stderr


def test_init_twice_is_an_error(lakebed: Lakebed) -> None:
    lakebed.ok("init", "shop")

    answer = lakebed("init", "shop", "--json")

    assert answer.exit_code == 1
    assert answer.error["code"] == "LAKE_EXISTS"


def test_tables_go_to_the_warehouse_that_was_named(lakebed: Lakebed) -> None:
    lakebed.ok("init", "shop", "--warehouse", lakebed.folder / "elsewhere")
    lakebed.ok("-l", "shop", "table", "create", "a.b", "id long")

    assert (lakebed.folder / "elsewhere" / "a" / "b" / "_delta_log").is_dir()


def test_lake_may_be_named_before_or_after_the_command_or_by_the_environment(
    lakebed: Lakebed, monkeypatch: pytest.MonkeyPatch
) -> None:
    lakebed.ok("init", "shop")
    lakebed.ok("-l", "shop", "namespace", "create", "one")
    lakebed.ok("namespace", "create", "two", "-l", "shop")
    monkeypatch.setenv("LAKEBED_LAKE", "shop")

    assert lakebed.json("namespace", "list") == [{"name": "one"}, {"name": "two"}]


def test_option_goes_before_the_environment(
    lakebed: Lakebed, monkeypatch: pytest.MonkeyPatch
) -> None:
    lakebed.ok("init", "shop")
    monkeypatch.setenv("LAKEBED_LAKE", "nowhere")

    assert lakebed("namespace", "list").exit_code == 1
    assert lakebed("-l", "shop", "namespace", "list").exit_code == 0


def test_lake_is_found_from_a_folder_inside_it(
    lake: Lakebed, monkeypatch: pytest.MonkeyPatch
) -> None:
    (lake.folder / "deep" / "er").mkdir(parents=True)
    monkeypatch.chdir(lake.folder / "deep" / "er")

    assert lake("table", "list").exit_code == 0


def test_no_lake_is_an_error_with_a_hint(lakebed: Lakebed) -> None:
    answer = lakebed("table", "list", "--json")

    assert answer.exit_code == 1
    assert answer.stdout == ""
    assert answer.error["code"] == "LAKE_NOT_FOUND"
    assert "lakebed init" in answer.error["hint"]


def test_missing_lake_that_was_named_is_an_error_with_a_hint(lakebed: Lakebed) -> None:
    answer = lakebed("-l", "nowhere", "table", "list")

    assert answer.exit_code == 1
    assert answer.stderr.startswith("error: ")
    assert "[LAKE_NOT_FOUND]\nhint: " in answer.stderr
    assert not (lakebed.folder / "nowhere").exists()
