"""Properties of Delta and Iceberg that tables carry for their readers and writers, or refuse."""

import re

from lakebed.model.errors import InvalidSetting

# Claims about features and protocol: what the published protocol says is true, and nothing else.
DELTA_CLAIMS = (
    "delta.checkpointPolicy",
    "delta.columnMapping.",
    "delta.constraints.",
    "delta.coordinatedCommits.",
    "delta.enableChangeDataFeed",
    "delta.enableDeletionVectors",
    "delta.enableIcebergCompat",
    "delta.enableInCommitTimestamps",
    "delta.enableRowTracking",
    "delta.enableTypeWidening",
    "delta.feature.",
    "delta.inCommitTimestampEnablement",
    "delta.minReaderVersion",
    "delta.minWriterVersion",
    "delta.rowTracking",
    "delta.universalFormat.",
)
# Known names that cannot be carried, with what to do instead.
_INSTEAD = {
    "delta.appendOnly": "lakebed does not refuse deletes for it: leave it out",
    "delta.checkpointInterval": "lakebed writes the checkpoints: set"
    " publish.delta.checkpoint-interval",
    "delta.isolationLevel": "set commit.isolation",
    "write.wap.enabled": "write to a branch, and fast_forward main to it",
}
_INTERVAL, _WHOLE, _TRUTH, _TEXT = "an interval", "a whole number", "true or false", "text"
_DELTA = {
    "delta.deletedFileRetentionDuration": _INTERVAL,
    "delta.logRetentionDuration": _INTERVAL,
    "delta.setTransactionRetentionDuration": _INTERVAL,
    "delta.dataSkippingNumIndexedCols": _WHOLE,
    "delta.dataSkippingStatsColumns": _TEXT,
    "delta.targetFileSize": _TEXT,
    "delta.tuneFileSizesForRewrites": _TRUTH,
    "delta.autoOptimize.autoCompact": _TEXT,
    "delta.autoOptimize.optimizeWrite": _TRUTH,
    "delta.randomizeFilePrefixes": _TRUTH,
    "delta.randomPrefixLength": _WHOLE,
}
_ICEBERG = {
    **dict.fromkeys(
        (
            "commit.manifest.min-count-to-merge",
            "commit.manifest.target-size-bytes",
            "commit.retry.max-wait-ms",
            "commit.retry.min-wait-ms",
            "commit.retry.num-retries",
            "commit.retry.total-timeout-ms",
            "commit.status-check.max-wait-ms",
            "commit.status-check.min-wait-ms",
            "commit.status-check.num-retries",
            "commit.status-check.total-timeout-ms",
            "write.delete.target-file-size-bytes",
            "write.parquet.bloom-filter-max-bytes",
            "write.parquet.dict-size-bytes",
            "write.parquet.page-row-limit",
            "write.parquet.page-size-bytes",
            "write.parquet.row-group-size-bytes",
            "write.summary.partition-limit",
        ),
        _WHOLE,
    ),
    **dict.fromkeys(
        (
            "commit.manifest-merge.enabled",
            "write.object-storage.enabled",
            "write.object-storage.partitioned-paths",
            "write.spark.accept-any-schema",
            "write.spark.fanout.enabled",
            "write.upsert.enabled",
        ),
        _TRUTH,
    ),
    **dict.fromkeys(
        (
            "write.avro.compression-codec",
            "write.avro.compression-level",
            "write.delete.distribution-mode",
            "write.delete.format.default",
            "write.delete.granularity",
            "write.delete.isolation-level",
            "write.distribution-mode",
            "write.location-provider.impl",
            "write.merge.distribution-mode",
            "write.merge.isolation-level",
            "write.update.distribution-mode",
            "write.update.isolation-level",
        ),
        _TEXT,
    ),
}
_OF_COLUMNS = (
    "write.parquet.bloom-filter-enabled.column.",
    "write.parquet.bloom-filter-fpp.column.",
    "write.parquet.stats-enabled.column.",
)
CARRIED = {**_DELTA, **_ICEBERG}
_UNITS = "week|day|hour|minute|second|millisecond|microsecond"
_INTERVAL_TEXT = re.compile(rf"(?:interval\s+)?(?:\d+\s+(?:{_UNITS})s?\s*)+", re.IGNORECASE)


def is_carried(name: str) -> bool:
    return name in CARRIED or name.startswith(_OF_COLUMNS)


def check_carried(name: str, text: str) -> None:
    """Readers stumble over a value that is not what its property asks for."""
    wanted = CARRIED.get(name, _TEXT)
    fits = {
        _INTERVAL: _INTERVAL_TEXT.fullmatch(text) is not None,
        _WHOLE: re.fullmatch(r"-?\d+", text, re.ASCII) is not None,
        _TRUTH: text.lower() in ("true", "false"),
        _TEXT: True,
    }
    if not fits[wanted]:
        example = "interval 30 days" if wanted == _INTERVAL else wanted
        raise InvalidSetting(
            f"property {name!r} = {text!r} is not {wanted}", hint=f"write {example}", name=name
        )


def refuse_replaced(name: str) -> None:
    """Names that both formats know, and that lakebed has its own way for."""
    if name in _INSTEAD:
        raise InvalidSetting(
            f"property {name!r} has no effect in lakebed", hint=_INSTEAD[name], name=name
        )
    if name.startswith("delta.constraints."):
        raise InvalidSetting(
            f"property {name!r} is published by lakebed itself",
            hint="add the constraint: ALTER TABLE … ADD CONSTRAINT, or alter().add_constraint",
            name=name,
        )
