"""What users give as options of Spark's data source."""

import json
from pathlib import Path

import pytest
from pyspark.sql import datasource as ds

import lakebed
from pyspark_lakebed.filters import where_of
from pyspark_lakebed.options import Options


def test_names_are_found_whatever_their_case() -> None:
    options = Options({"Lake": "x", "STARTINGVERSION": "latest", "maxfilespertrigger": "5"})

    assert options.text("lake") == "x"
    assert options.starting_version == "latest"
    assert options.number("maxFilesPerTrigger") == 5


def test_a_name_that_is_almost_one_is_refused_and_a_platforms_own_is_not() -> None:
    Options({"spark.platform.cluster": "1"})

    with pytest.raises(lakebed.InvalidInput) as caught:
        Options({"startingVersions": "1"})
    assert caught.value.hint == "did you mean startingVersion?"


def test_lists_are_cut_outside_of_brackets() -> None:
    options = Options({"partitionBy": "day(ts), bucket(16, id)", "primaryKey": "id"})

    assert options.new_table == {
        "partition_by": ["day(ts)", "bucket(16, id)"],
        "sort_by": (),
        "primary_key": ["id"],
    }


@pytest.mark.parametrize(
    ("given", "meaning"),
    [
        ({}, "refuse"),
        ({"ignoreDeletes": "true"}, "skip_deletes"),
        ({"ignoreChanges": "true", "ignoreDeletes": "true"}, "rows"),
        ({"skipChangeCommits": "true", "ignoreChanges": "true"}, "skip"),
    ],
)
def test_the_strongest_word_on_changes_counts(given: dict[str, str], meaning: str) -> None:
    assert Options(given).on_change == meaning


def test_a_stream_is_known_by_its_query_wherever_the_checkpoint_is_spelled(
    tmp_path: Path,
) -> None:
    (tmp_path / "metadata").write_text(json.dumps({"id": "one"}))
    plain = Options({"path": "s.t", "checkpointLocation": str(tmp_path)}).application
    as_uri = Options({"path": "s.t", "checkpointLocation": tmp_path.as_uri()}).application
    (tmp_path / "metadata").write_text(json.dumps({"id": "two"}))
    begun_anew = Options({"path": "s.t", "checkpointLocation": str(tmp_path)}).application

    assert plain == as_uri
    assert begun_anew != plain
    assert Options({"path": "s.u", "checkpointLocation": str(tmp_path)}).application != begun_anew


def test_a_checkpoint_elsewhere_is_known_by_its_place() -> None:
    far = {"path": "s.t", "checkpointLocation": "s3://bucket/place"}

    assert Options(far).application == Options(far).application
    assert Options({**far, "txnAppId": "mine"}).application == "mine"
    with pytest.raises(lakebed.InvalidInput, match="without a checkpoint"):
        _ = Options({"path": "s.t"}).application


@pytest.mark.parametrize(
    "given", [{"txnAppId": "a"}, {"txnVersion": "1"}, {"txnAppId": "a", "txnVersion": "x"}]
)
def test_half_an_application_transaction_is_refused(given: dict[str, str]) -> None:
    with pytest.raises(lakebed.InvalidInput):
        _ = Options(given).txn


def test_filters_become_sql_only_where_it_means_the_same() -> None:
    filters = [
        ds.EqualTo(("a", 'b"c'), "it's"),
        ds.GreaterThan(("n",), 5),
        ds.LessThan(("f",), 1.5),
        ds.In(("n",), (1, 2)),
        ds.In(("n",), (1, None)),
        ds.IsNotNull(("n",)),
        ds.Not(ds.EqualTo(("n",), 1)),
    ]

    text = where_of(filters)

    assert text == """"a"."b""c" = 'it''s' AND "n" > 5 AND "n" IN (1, 2) AND "n" IS NOT NULL"""
    assert where_of([]) is None
