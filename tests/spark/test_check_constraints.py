"""CHECK constraints as Spark gets them: it answers what the SQL engine answers, for every row."""

import datetime as dt
from decimal import Decimal

import duckdb
import pyarrow as pa
from pyspark.sql import SparkSession

from lakebed.model.schema import new_schema
from lakebed.model.schema_text import parse_schema
from lakebed.sql.spark import to_spark

SCHEMA = new_schema(
    parse_schema("a int, b decimal(9,2), x double, name string, d date, ok boolean"),
    primary_key=(),
)
ROWS = [
    (7, Decimal("7.00"), 7.5, "Anna", dt.date(2024, 1, 31), True),
    (-7, Decimal("-0.01"), -2.5, "it's", dt.date(2024, 2, 29), False),
    (0, Decimal("0.00"), 0.0, "", dt.date(1999, 12, 31), None),
    (3, Decimal("2.50"), 2.5, "a%b_c", dt.date(2030, 1, 1), True),
    (-3, None, None, "größe  ", None, False),
    (None, Decimal("12345.67"), float("nan"), None, dt.date(2024, 1, 31), True),
]
CHECKS = [
    "a < b",
    "A::BIGINT + 1 > b / 2",
    "a % 3 = 1 OR a % 3 = -1",
    "a - 2 * a >= 0",
    "x / 2 < 1.3 AND x > -100",
    "abs(a) > 3",
    "round(x) = 3",
    "floor(x) = 2 OR ceil(x) = 3",
    "x > 1",
    "name || 'x' <> 'it''sx'",
    "name LIKE 'a%' AND lower(name) = 'a%b_c'",
    "length(name) > 4",
    "upper(trim(name)) = 'GRÖßE' OR trim(name) = 'größe'",
    "starts_with(name, 'A') OR contains(name, '%')",
    "ok AND NOT (a IS NULL)",
    "ok IS NOT FALSE",
    "a IN (7, 3) OR name IN ('', 'b')",
    "a BETWEEN -3 AND 3",
    "a IS DISTINCT FROM 7",
    "d > DATE '2024-01-31'",
    "year(d) = 2024 AND month(d) = 2",
    "coalesce(a, 1) > 0",
    "nullif(a, 7) IS NULL",
    "greatest(a, 1) = 1",
    "CASE WHEN a > 0 THEN b > 2 ELSE ok END",
]


def test_spark_answers_translated_constraints_as_the_engine_does(spark: SparkSession) -> None:
    said = [to_spark(check, SCHEMA) for check in CHECKS]
    assert None not in said
    names = ["a", "b", "x", "name", "d", "ok"]
    columns = "a int, b decimal(9,2), x double, name string, d date, ok boolean"
    types = [pa.int32(), pa.decimal128(9, 2), pa.float64(), pa.string(), pa.date32(), pa.bool_()]
    arrays = [pa.array(c, t) for c, t in zip(zip(*ROWS, strict=True), types, strict=True)]
    given = pa.table(arrays, names=names)

    with duckdb.connect() as engine:
        engine.register("given", given)
        listed = ", ".join(f"({check})" for check in CHECKS)
        ours = engine.sql(f"SELECT {listed} FROM given").fetchall()
    theirs = spark.createDataFrame(ROWS, columns).selectExpr(*(f"({s})" for s in said if s))

    for row, found in zip(ours, theirs.collect(), strict=True):
        different = [c for c, a, b in zip(CHECKS, row, found, strict=True) if a != b]
        assert different == []
