"""Where a lake can be, what is refused, and what a refusal leaves behind: nothing."""

from pathlib import Path

import pytest

import lakebed
from lakebed.model.errors import InvalidSetting, InvalidUri, LakeNotFound

NO_STORE = ["http://x", "deltasql://sqlite/x"]
ELSEWHERE = ["s3://bucket/x", "S3://b", "gs://b", "az://c/x", *NO_STORE]
NO_PLACE = ["", "\0", "a\0b", ":memory", "file:", "file://host/x", "\ud800x", "~no-such-user/x"]


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


@pytest.mark.parametrize("uri", [*ELSEWHERE, *NO_PLACE, "x" * 300, "a/" * 3000])
def test_a_bad_uri_makes_no_folder(uri: str) -> None:
    with pytest.raises(InvalidUri) as refused:
        lakebed.open(uri, create=True)

    assert refused.value.hint
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize("uri", [5, None, b"lake", ["lake"]])
def test_what_is_not_text_is_refused(uri: object) -> None:
    with pytest.raises(InvalidUri, match="not text"):
        lakebed.open(uri, create=True)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "warehouse", [*NO_STORE, "s3://", "s3://b/%2e", "", "file://host/x", "\ud800", 5, b"x"]
)
def test_a_bad_warehouse_makes_no_lake(warehouse: str) -> None:
    with pytest.raises(InvalidUri):
        lakebed.open("lake", create=True, warehouse=warehouse)

    assert list(Path().iterdir()) == []


def test_a_password_in_a_uri_is_not_shown() -> None:
    url = "postgresql://ada:s3cret@127.0.0.1:1/db"

    with pytest.raises(lakebed.LakebedError) as unreachable:
        lakebed.open(url, settings={"database.timeout-s": 1})
    with pytest.raises(InvalidUri) as no_warehouse:
        lakebed.open("lake", create=True, warehouse=url)

    for error in (unreachable.value, no_warehouse.value):
        assert "s3cret" not in f"{error.message} {error.hint} {error.context}"


@pytest.mark.parametrize(
    "settings", [{"bogus": 1}, {"commit.retries": "x"}, {"commit.retries": -1}, {"": 1}]
)
def test_a_bad_setting_makes_no_lake(settings: dict[str, object]) -> None:
    with pytest.raises(InvalidSetting):
        lakebed.open("lake", create=True, settings=settings)

    assert list(Path().iterdir()) == []


def test_a_missing_lake_is_not_made_unless_asked_for() -> None:
    with pytest.raises(LakeNotFound, match="no lake") as missing:
        lakebed.open("lake")

    assert "lakebed init" in missing.value.hint
    assert list(Path().iterdir()) == []


def test_a_warehouse_is_chosen_once(tmp_path: Path) -> None:
    lakebed.open("lake", create=True, warehouse=tmp_path / "w").close()

    with lakebed.open("lake") as lake:
        assert lake.warehouse == (tmp_path / "w").as_uri()
    with pytest.raises(lakebed.InvalidInput, match="warehouse is"):
        lakebed.open("lake", warehouse=tmp_path / "other")


def test_memory_leaves_nothing_on_disk(tmp_path: Path) -> None:
    with lakebed.open(":memory:") as lake:
        table = lake.create_table("a.t", [{"id": 1}])
        table.append([{"id": 2}])

        assert table.to_arrow()["id"].to_pylist() == [1, 2]
        assert lake.check().clean
    assert list(Path().iterdir()) == []
    assert [p.name for p in tmp_path.rglob("*")] == ["here"]


def test_two_lakes_in_memory_share_nothing() -> None:
    with lakebed.open(":memory:") as one, lakebed.open(":memory:") as other:
        one.create_table("a.t", "id long")

        assert other.tables() == []
        assert one.warehouse != other.warehouse


def test_a_folder_moved_elsewhere_is_the_same_lake() -> None:
    with lakebed.open("lake", create=True) as lake:
        lake.create_table("a.t", [{"id": 1}])
    Path("lake").rename("moved")

    with lakebed.open("moved") as lake:
        assert lake.table("a.t").append([{"id": 2}]).published
        assert lake.table("a.t").row_count == 2
