"""Which URIs name a place in an object store."""

import pytest

from lakebed.model.errors import InvalidUri
from lakebed.storage.place import Place, parse_place


@pytest.mark.parametrize(
    ("uri", "place"),
    [
        ("s3://bucket", Place("s3://bucket", "s3", "bucket", "")),
        ("S3://bucket/", Place("s3://bucket", "s3", "bucket", "")),
        ("s3a://bucket/a/b/", Place("s3://bucket/a/b", "s3", "bucket", "a/b")),
        ("gs://b.c/a=1", Place("gs://b.c/a=1", "gs", "b.c", "a=1")),
        ("az://c/x", Place("az://c/x", "az", "c", "x")),
        (
            "abfss://c@account.dfs.core.windows.net/x",
            Place("abfss://c@account.dfs.core.windows.net/x", "az", "c", "x", "account"),
        ),
    ],
)
def test_a_place_is_found(uri: str, place: Place) -> None:
    assert parse_place(uri) == place


@pytest.mark.parametrize(
    "uri",
    [
        "s3:bucket",
        "s3:/bucket",
        "s3://",
        "s3:///prefix",
        "s3://key:secret@bucket/prefix",
        "s3://bucket/a//b",
        "s3://bucket/../b",
        "s3://bucket/a%20b",
        "s3://bucket/a b",
        "s3://bucket/x?versionId=secret",
        "az://c@account/x",
        "abfss://container/x",
        "abfss://c@secret/x",
    ],
)
def test_any_other_is_refused_without_showing_what_may_be_a_secret(uri: str) -> None:
    with pytest.raises(InvalidUri) as caught:
        parse_place(uri)

    assert caught.value.hint
    assert "secret" not in f"{caught.value.message} {caught.value.hint}"
