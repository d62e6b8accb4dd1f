"""Properties of tables: settings, what the formats know, what is free, and slips of the pen."""

import pytest

from lakebed.model.errors import InvalidSetting
from lakebed.model.properties import check_properties


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("owner", "Ada"),
        ("team.note", "x"),
        ("read.split.target-size", "134217728"),
        ("history.expire.max-snapshot-age-ms", "1000"),
        ("delta.deletedFileRetentionDuration", "interval 365 days"),
        ("delta.logRetentionDuration", "interval 1 week 2 days"),
        ("delta.dataSkippingNumIndexedCols", "-1"),
        ("delta.autoOptimize.optimizeWrite", "true"),
        ("delta.enableChangeDataFeed", "true"),
        ("commit.retry.num-retries", "4"),
        ("write.distribution-mode", "hash"),
        ("write.parquet.row-group-size-bytes", "134217728"),
        ("write.parquet.bloom-filter-enabled.column.id", "true"),
        ("write.delete.mode", "copy-on-write"),
        ("publish.mode", "background"),
    ],
)
def test_what_has_a_meaning_and_what_is_free_is_kept(name: str, value: str) -> None:
    assert check_properties({name: value}) == {name: value}


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("write.delte.mode", "write.delete.mode"),
        ("write.Delete.Mode", "write.delete.mode"),
        ("publish.mod", "publish.mode"),
        ("commit.retry.num-retry", "commit.retry.num-retries"),
        ("delta.deletedFileRetention", "delta.deletedFileRetentionDuration"),
        ("delta.enablechangedatafeed", "delta.enableChangeDataFeed"),
        ("lakebed.upgrades", "lakebed.upgrade"),
        ("write.zzz", "lakebed settings"),
        ("query.zzz", "free for your own"),
    ],
)
def test_a_slip_of_the_pen_is_refused_with_what_was_meant(name: str, meant: str) -> None:
    with pytest.raises(InvalidSetting, match="there is no property") as refused:
        check_properties({name: "x"})

    assert meant in refused.value.hint


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("delta.deletedFileRetentionDuration", "a year", "interval 30 days"),
        ("delta.logRetentionDuration", "interval 1 month", "interval 30 days"),
        ("delta.dataSkippingNumIndexedCols", "many", "a whole number"),
        ("write.upsert.enabled", "maybe", "true or false"),
        ("delta.checkpointInterval", "10", "publish.delta.checkpoint-interval"),
        ("delta.isolationLevel", "Serializable", "commit.isolation"),
        ("delta.appendOnly", "true", "leave it out"),
        ("delta.constraints.c", "a > 0", "add_constraint"),
        ("delta.enableDeletionVectors", "false", "leave it out"),
        ("delta.columnMapping.mode", "name", "leave it out"),
        ("delta.minReaderVersion", "1", "leave it out"),
        ("write.metadata.path", "x", "leave it out"),
        ("gc.enabled", "true", "leave it out"),
        ("query.threads", "1", "lakebed settings set"),
    ],
)
def test_what_cannot_be_true_or_has_another_way_is_refused(
    name: str, value: str, said: str
) -> None:
    with pytest.raises(InvalidSetting) as refused:
        check_properties({name: value})

    assert said in refused.value.hint
