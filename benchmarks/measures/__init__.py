"""The measures, in the order of docs/benchmarks.md."""

from benchmarks.measures import (
    append_growth,
    append_lag,
    append_writers,
    appends,
    buffered_writes,
    merge,
    metadata_answers,
    plan,
    plan_open,
    scattered_delete,
    shapes,
    small_delete,
    spark_pipeline,
    spark_read,
    spark_stream,
    spark_write,
    tpch,
    upsert,
)

MEASURES = {
    module.MEASURE.name: module.MEASURE
    for module in (
        small_delete,
        scattered_delete,
        merge,
        upsert,
        appends,
        append_lag,
        append_growth,
        append_writers,
        buffered_writes,
        tpch,
        metadata_answers,
        plan,
        plan_open,
        shapes,
        spark_read,
        spark_write,
        spark_pipeline,
        spark_stream,
    )
}
