"""A DataFrame as data files of a table: executors write them, the driver gets their records."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakebed.engines.arrow.write import LINEAGE, WriteOptions
from lakebed.engines.spark.arrow_out import Order, write_in_workers
from lakebed.engines.spark.fit import fitted
from lakebed.engines.spark.joined import are_small, joined
from lakebed.engines.spark.layout import evened, gathered
from lakebed.engines.spark.native import is_native, write_natively
from lakebed.engines.spark.predicate import to_column
from lakebed.engines.spark.refusals import refusal, told
from lakebed.model.errors import (
    ConstraintViolated,
    LakebedError,
    SchemaMismatch,
    UnsupportedFeature,
)
from lakebed.model.expressions import Predicate
from lakebed.model.files import DataFile
from lakebed.model.partitioning import UNPARTITIONED, UNSORTED, PartitionSpec, SortOrder
from lakebed.model.schema import Schema
from lakebed.storage.base import Storage


def write(
    session: SparkSession,
    frame: DataFrame,
    *,
    storage: Storage,
    root: str,
    schema: Schema,
    spec: PartitionSpec = UNPARTITIONED,
    sort_order: SortOrder = UNSORTED,
    options: WriteOptions | None = None,
    name_prefix: str,
    lineage: bool = False,
    checks: Mapping[str, str] | None = None,
    must_match: Predicate | str | None = None,
    rounds: bool = False,
) -> list[DataFile]:
    """Write the frame's rows below `root`; no rows, no file. A failure leaves orphans at most.

    Columns are matched by name and fitted to the schema. With `lineage` the frame has the columns
    of LINEAGE beside them. `checks` are constraints by name, in Spark's SQL; `must_match`, bound or
    in Spark's SQL, is TRUE for every row of an overwrite. With `rounds` decimals may become the
    nearest float.
    """
    _check_storage(storage)
    order = Order(
        storage.root_uri,
        root,
        schema,
        spec,
        sort_order,
        options or WriteOptions(),
        name_prefix,
        lineage,
    )
    beside = tuple(field.name for field in LINEAGE) if lineage else ()
    with told("writing rows"):
        computed = [field.name for field in schema.fields] if rounds else ()
        rows = fitted(frame, schema, beside=beside, computed=computed)
        rows = _checked(rows, checks or {})
        rows = rows if must_match is None else _matching(rows, must_match)
        try:
            files = _written(rows, order, storage)
            if spec.fields or lineage or not are_small(files, order.options):
                return files
            return _in_few(session, files, order, storage)
        except BaseException:
            remove_written(storage, root, name_prefix)
            raise


def _written(rows: DataFrame, order: Order, storage: Storage) -> list[DataFile]:
    if is_native(rows.sparkSession, order):
        return write_natively(rows, order, storage)
    parted = order.spec.fields
    placed = gathered(rows, order.spec, order.schema) if parted else evened(rows)
    return write_in_workers(placed, order)


def _in_few(
    session: SparkSession, small: list[DataFile], order: Order, storage: Storage
) -> list[DataFile]:
    """Written twice: how little a filter leaves is not known before."""
    rows = joined(
        session,
        small,
        storage=storage,
        root=order.root,
        schema=order.schema,
        options=order.options,
    )
    prefix = f"{order.name_prefix}-joined"
    try:
        files = _written(rows, replace(order, name_prefix=prefix), storage)
    except BaseException:
        remove_written(storage, order.root, prefix)
        raise
    with suppress(LakebedError):  # what stays is an orphan
        for file in small:
            storage.delete(f"{order.root}/{file.path}")
    return files


def remove_written(storage: Storage, root: str, name_prefix: str) -> None:
    """Best effort: what stays, because a task is still at it, is an orphan."""
    with suppress(LakebedError):
        storage.delete_folder(f"{root}/data/{name_prefix}")
    with suppress(LakebedError):
        for stat in storage.list(f"{root}/data"):
            if stat.path.rpartition("/")[2].startswith(name_prefix):
                storage.delete(stat.path)


def _checked(frame: DataFrame, checks: Mapping[str, str]) -> DataFrame:
    """Rows stop the job when a constraint is FALSE for them."""
    for name, condition in checks.items():
        shown = F.substring(F.to_json(F.struct(*frame.columns)), 1, 200)
        refused = refusal(
            ConstraintViolated,
            F.concat(F.lit(f"a row violates constraint {name!r}: "), shown),
            hint="correct the row, or leave the constraint out",
            constraint=name,
        )
        holds = F.coalesce(F.expr(condition), F.lit(True))
        frame = frame.where(F.when(holds, F.lit(True)).otherwise(refused.cast("boolean")))
    return frame


def _matching(frame: DataFrame, condition: Predicate | str) -> DataFrame:
    refused = refusal(
        SchemaMismatch,
        F.lit("a row does not match the condition of this overwrite"),
        hint="an overwrite with `where` may only write rows that match it",
    )
    test = F.expr(condition) if isinstance(condition, str) else to_column(condition)
    holds = F.coalesce(test, F.lit(False))
    return frame.where(F.when(holds, F.lit(True)).otherwise(refused.cast("boolean")))


def _check_storage(storage: Storage) -> None:
    if storage.root_uri.startswith("memory:"):
        raise UnsupportedFeature(
            "a lake in memory is not reached by Spark's workers",
            hint="open a lake in a folder to use Spark",
        )
