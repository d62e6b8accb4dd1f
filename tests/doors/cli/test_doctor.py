"""lakebed doctor and lakebed spark jars."""

from pathlib import Path

import pytest

import lakebed as package
from lakebed.storage import open_storage
from tests.doors.cli.command import Lakebed
from tests.stores import new_bucket


def test_doctor_tells_what_is_there_and_how_to_get_the_rest(
    lakebed: Lakebed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    found = {each["name"]: each for each in lakebed.json("doctor")}

    assert found["lakebed"]["detail"] == package.__version__
    assert found["pyspark"]["detail"].startswith("4.1.")
    assert (found["spark connectors"]["ok"], found["spark connectors"]["fix"]) == (
        False,
        "lakebed spark jars",
    )
    assert {"python", "java", "postgresql driver", "fuse", "polars"} <= set(found)
    assert all(each["fix"] for each in found.values() if not each["ok"])
    assert "lakebed spark jars" in lakebed.ok("doctor").stdout


def test_doctor_opens_the_lake_that_is_named(lake: Lakebed) -> None:
    assert "lake" not in {each["name"] for each in lake.json("doctor")}

    named = {each["name"]: each for each in lake.json("-l", ".", "doctor")}
    assert named["lake"]["ok"]
    assert named["lake"]["detail"].endswith("0 tables")
    missing = lake("-l", "nowhere", "doctor", "--json")
    assert missing.exit_code == 1
    assert "LAKE_NOT_FOUND" in missing.json[-1]["detail"]


def test_doctor_tries_a_warehouse_in_a_folder_and_leaves_nothing(
    lakebed: Lakebed, tmp_path: Path
) -> None:
    tried = lakebed.json("doctor", str(tmp_path / "ware"))

    assert [each["name"] for each in tried] == [
        "race",
        "create",
        "insert",
        "reopen and count",
        "clean-up",
    ]
    assert all(each["ok"] for each in tried)
    assert [path for path in (tmp_path / "ware").rglob("*") if path.is_file()] == []


@pytest.mark.objects
def test_doctor_tries_a_warehouse_on_an_object_store(
    lakebed: Lakebed, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = new_bucket()
    for name, value in bucket.environment().items():
        monkeypatch.setenv(name, value)

    assert "check finds nothing" in lakebed.ok("doctor", bucket.uri).stdout
    assert list(open_storage(bucket.uri).list("")) == []

    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong-one")
    refused = lakebed("doctor", bucket.uri, "--json")
    assert refused.exit_code == 1
    assert [each["ok"] for each in refused.json] == [False, False]
    assert "STORAGE_DENIED" in refused.json[0]["detail"]
    assert "wrong-one" not in refused.stdout


def test_jars_that_cannot_be_fetched_are_one_message(
    lakebed: Lakebed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("LAKEBED_MAVEN_URL", f"file://{tmp_path}/nothing")

    answer = lakebed("spark", "jars", "--json")

    assert (answer.exit_code, answer.error["code"]) == (1, "JARS_UNREACHABLE")
    assert lakebed("spark", "jars", "--set", "nope").exit_code == 1
