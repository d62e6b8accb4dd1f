"""What a user may type as the place of a warehouse."""

import gc
import sys
from pathlib import Path

import pytest

from lakebed.model.errors import InvalidInput, InvalidUri, MissingExtra
from lakebed.storage import open_storage


@pytest.mark.parametrize(
    ("typed", "location"),
    [
        ("file:///data/lake", "/data/lake"),
        ("file:/data/lake", "/data/lake"),
        ("FILE:///data/lake/", "/data/lake"),
        ("file://localhost/data/lake", "/data/lake"),
        ("file:///my%20data/100%25/a%2Bb+c/%E6%9D%B1", "/my data/100%/a+b+c/東"),
        ("file:///my data", "/my data"),
        ("/my data/100%/a%20b", "/my data/100%/a%20b"),
        ("/data/../lake", "/lake"),
        ("/", "/"),
    ],
)
def test_a_local_place_is_found(typed: str, location: str) -> None:
    assert open_storage(typed).location("") == location


@pytest.mark.parametrize("name", ["my data", "100%", "a#b?c", "東", "a%20b", "a+b", "\udc80"])
def test_a_root_uri_leads_back_to_its_folder(tmp_path: Path, name: str) -> None:
    storage = open_storage(str(tmp_path / name))

    again = open_storage(storage.root_uri)

    assert again.location("x") == (tmp_path / name / "x").as_posix()
    assert again.root_uri == storage.root_uri
    assert storage.root_uri.startswith("file:///")


@pytest.mark.parametrize("typed", ["lake", "./lake", "deep/../lake", "./a:b", "2024:lake"])
def test_a_relative_path_is_below_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: str
) -> None:
    monkeypatch.chdir(tmp_path)
    storage = open_storage(typed)
    monkeypatch.chdir("/")

    storage.put_if_absent("x", b"1")

    assert (tmp_path / typed / "x").resolve().read_bytes() == b"1"


def test_opening_makes_no_folder(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path / "lake"))
    assert list(storage.list("")) == []
    assert storage.stat("a") is None
    storage.delete("a")

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "typed",
    [
        "https://example.org/x",
        "hdfs://name/x",
        "s3n://bucket/x",
    ],
)
def test_another_scheme_is_refused_and_makes_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: str
) -> None:
    monkeypatch.chdir(tmp_path)

    with pytest.raises(InvalidUri, match="not supported") as caught:
        open_storage(typed)

    assert "s3://" in caught.value.hint
    assert list(tmp_path.iterdir()) == []


def test_options_are_refused_where_there_is_no_object_store(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="object stores"):
        open_storage(str(tmp_path), {"endpoint": "http://127.0.0.1:1"})


@pytest.mark.parametrize(
    "typed",
    [
        "",
        "a\0b",
        ":memory:",
        "file:",
        "file://",
        "file:relative",
        "file://relative/path",
        "file:///a%zz",
        "file:///a%2",
        "file:///a%00b",
        "file:///a?b",
        "file:///a?",
        "file:///a#b",
        "file:///a\nb",
        "file://[bad/a",
        "memory://a/b",
        "memory:///a",
        "memory://a b",
    ],
)
def test_a_malformed_place_is_refused_with_a_hint(typed: str) -> None:
    with pytest.raises(InvalidUri) as caught:
        open_storage(typed)

    assert caught.value.hint


def test_a_named_memory_is_shared_and_unnamed_ones_are_not() -> None:
    named, unnamed = open_storage("memory://shared"), open_storage("memory://")
    named.put_if_absent("a", b"")

    assert open_storage("memory://shared").stat("a") is not None
    assert open_storage("memory://") is not unnamed
    assert open_storage(unnamed.root_uri) is unnamed


def test_a_memory_goes_with_its_last_user() -> None:
    open_storage("memory://short-lived").put_if_absent("a", b"")
    gc.collect()

    assert open_storage("memory://short-lived").stat("a") is None


def test_an_object_store_without_its_library_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "lakebed.storage.objects.storage", None)

    with pytest.raises(MissingExtra) as caught:
        open_storage("s3://bucket/prefix")

    assert "lakebed[objects]" in caught.value.hint
