"""lakebed settings and lakebed upgrade."""

import pytest

from lakebed.model.settings import SETTINGS
from tests.doors.cli.command import Lakebed


def test_every_setting_is_listed_with_its_source(
    lake: Lakebed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKEBED_COMMIT_RETRIES", "3")

    listed = {row["name"]: row for row in lake.json("settings")}

    assert list(listed) == [setting.name for setting in SETTINGS]
    assert (listed["commit.retries"]["value"], listed["commit.retries"]["source"]) == (
        3,
        "LAKEBED_COMMIT_RETRIES",
    )
    assert listed["publish.mode"]["source"] == "default"
    assert "publish.mode" in lake.ok("settings").stdout


def test_setting_is_kept_in_the_lake_until_it_is_unset(lake: Lakebed) -> None:
    kept = lake.json("settings", "set", "publish.formats", "iceberg")
    lake.ok("table", "create", "a.b", "id long")
    unset = lake.json("settings", "unset", "publish.formats")

    assert kept == {"name": "publish.formats", "value": "iceberg", "source": "lake"}
    assert lake.json("table", "show", "a.b")["formats"] == ["iceberg"]
    assert unset["source"] == "default"


@pytest.mark.parametrize(
    "arguments",
    [
        ["set", "no.such", "1"],
        ["set", "commit.retries", "many"],
        ["set", "commit.retries", "--", "-1"],
        ["set", "publish.mode", "never"],
        ["unset", "no.such"],
    ],
)
def test_bad_setting_is_an_error(lake: Lakebed, arguments: list[str]) -> None:
    answer = lake("--json", "settings", *arguments)

    assert answer.exit_code == 1
    assert answer.error["code"] == "INVALID_SETTING"
    assert all(row["source"] != "lake" for row in lake.json("settings"))


def test_upgrade_of_a_new_lake_changes_nothing(lake: Lakebed) -> None:
    answer = lake.json("upgrade")

    assert answer["before"] == answer["now"]
    assert "already" in lake.ok("upgrade").stderr


def test_upgrade_without_a_lake_is_an_error(lakebed: Lakebed) -> None:
    assert lakebed("upgrade", "--json").error["code"] == "LAKE_NOT_FOUND"
