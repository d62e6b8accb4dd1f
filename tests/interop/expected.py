"""What each reader does not do: docs/readers.md says it, and tests fail when it is no longer so."""

import math
from typing import Literal

from tests.interop.every_type import Case
from tests.interop.readers import Filter

READERS = {
    "deltalake to_pyarrow": "deltalake 1.6.6, `to_pyarrow_table` and `to_pyarrow_dataset`",
    "deltalake QueryBuilder": "deltalake 1.6.6, `QueryBuilder` (DataFusion)",
    "Polars scan_delta": "Polars 2.1.0",
    "DuckDB delta_scan": "DuckDB 1.5.5",
    "Spark delta": "delta-spark 4.4.0 on PySpark 4.1.4",
    "PyIceberg": "PyIceberg 0.12.0, `StaticTable` by folder and by metadata file",
    "Polars scan_iceberg": "Polars 2.1.0",
    "DuckDB iceberg_scan": "DuckDB 1.5.5",
    "Spark iceberg": "iceberg-spark-runtime 1.12.0 on PySpark 4.1.4, by metadata file",
}
_NAMES = "column names that need column mapping"
_LISTS = "NULL in a column of lists of structs"
_WORDS = ("identity", "bucket", "year", "month", "day", "hour")
_KEYS = "maps with byte or short keys"

# (reader, feature) -> what its refusal says.
REFUSES: dict[tuple[str, str], str] = {
    ("deltalake to_pyarrow", _NAMES): "columnMapping",
    ("Polars scan_delta", _NAMES): "columnMapping",
    ("Polars scan_iceberg", _KEYS): "data type mismatch",
    ("PyIceberg", "partitions by identity of timestamp_ns"): "timestamp-nanos",
    ("PyIceberg", "partitions by identity of timestamptz_ns"): "timestamp-nanos",
    ("Polars scan_iceberg", "partitions by identity of timestamp_ns"): "timestamp-nanos",
    ("Polars scan_iceberg", "partitions by identity of timestamptz_ns"): "timestamp-nanos",
    ("DuckDB iceberg_scan", "timestamptz_ns"): "Unrecognized primitive type",
    ("DuckDB iceberg_scan", "timestamptz_ns inside others"): "Unrecognized primitive type",
    **{
        ("DuckDB iceberg_scan", f"partitions by {word} of timestamptz_ns"): "Unrecognized primitive"
        for word in _WORDS
    },
    ("Spark iceberg", "time"): "does not support time",
    ("Spark iceberg", "time inside others"): "does not support time",
    **{
        ("Spark iceberg", f"partitions by {word} of time"): "does not support time"
        for word in ("identity", "bucket")
    },
    **{
        ("Spark iceberg", feature): f"unsupported type to Spark: {kind}"
        for kind in ("timestamp_ns", "timestamptz_ns")
        for feature in (
            kind,
            f"{kind} inside others",
            *(f"partitions by {word} of {kind}" for word in _WORDS),
        )
    },
}
# Evolved tables: change -> reader -> what its refusal says.
EVOLVED: dict[str, dict[str, str]] = {
    "column mapping": {
        "deltalake to_pyarrow": "columnMapping",
        "Polars scan_delta": "columnMapping",
    },
    "type widening": {
        "deltalake to_pyarrow": "typeWidening",
        "deltalake QueryBuilder": "TypeWidening",
        "Polars scan_delta": "typeWidening",
    },
}
# Refused while the table is empty, and read once it has a row.
REFUSES_EMPTY_TABLE = {("PyIceberg", "uuid inside others")}
# A defect of the reader, whoever wrote the table: PyIceberg's list visitor drops the null bits.
READS_EMPTY = {("PyIceberg", _LISTS)}

Gap = Literal["raises", "differs"]


def gap(reader: str, case: Case, condition: Filter) -> Gap | None:
    """Conditions a reader cannot evaluate, or evaluates wrongly whatever files are there."""
    is_nan = isinstance(condition.value, float) and math.isnan(condition.value)
    match reader:
        case "deltalake to_pyarrow" if is_nan and condition.operator == "<":
            return "differs"
        case "Polars scan_delta" if condition.kind.startswith("struct"):
            return "raises" if "binary" in condition.kind else None
        case "PyIceberg" if is_nan or _is_uncomparable(condition):
            return "raises"
        case "PyIceberg" if condition.kind == "float" and condition.value is not None:
            return "differs" if math.isinf(condition.value) else None
        case "PyIceberg" | "Polars scan_iceberg" if _steps_before_year_one(case, condition):
            return "raises"
        case _:
            return None


def loses(reader: str, case: Case, condition: Filter) -> set[int]:
    """Rows that the reader may leave out of what matches, by a defect of its own."""
    column = condition.column
    values = case.columns[column][1]
    term = case.options.get("partition_by", [""])[0]
    if reader != "DuckDB iceberg_scan" or f"{column})" not in term:
        return set()
    if term.startswith(("day", "month")) and condition.kind != "date":
        return {n for n, v in enumerate(values) if v is not None and v < 0}
    if term.startswith("truncate") and condition.kind.startswith("decimal"):
        return set(range(len(values)))
    if term.startswith("bucket") and condition.kind == "uuid":
        return set(range(len(values)))
    return set()


def _is_uncomparable(condition: Filter) -> bool:
    return condition.value is not None and condition.kind in (
        "uuid",
        "timestamp_ns",
        "timestamptz_ns",
    )


def _steps_before_year_one(case: Case, condition: Filter) -> bool:
    """PyIceberg turns `>= first day` into `> the day before` to project it on years and months."""
    first = condition.value in (-719_162, -62_135_596_800_000_000)
    terms = case.options.get("partition_by", [""])
    projected = condition.column in terms[0] and terms[0].startswith(("year", "month"))
    return condition.operator == ">=" and first and projected


def features(cases: tuple[Case, ...]) -> dict[str, tuple[str, ...]]:
    """Every feature with the formats that have it."""
    found: dict[str, tuple[str, ...]] = {}
    for case in cases:
        found[case.feature] = (*found.get(case.feature, ()), *case.formats)
    return found


def page_rows(cases: tuple[Case, ...]) -> list[str]:
    """The table of docs/readers.md."""
    rows = [
        f"| feature | {' | '.join(READERS)} |",
        f"|---|{'---|' * len(READERS)}",
    ]
    for feature, formats in features(cases).items():
        cells = [_cell(reader, feature, formats) for reader in READERS]
        rows.append(f"| {feature} | {' | '.join(cells)} |")
    return rows


def _cell(reader: str, feature: str, formats: tuple[str, ...]) -> str:
    of_delta = reader.startswith("deltalake") or "delta" in reader
    if of_delta and "delta" not in formats:
        return "\N{EN DASH}"
    if (reader, feature) in READS_EMPTY:
        return "reads `[]`"
    if (reader, feature) in REFUSES_EMPTY_TABLE:
        return "reads, but not an empty table"
    return "refuses" if (reader, feature) in REFUSES else "reads"
