"""Expectations on the rows of a step: dropped ones are parted, the rest is counted in few jobs."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from lakebed.model.errors import ExpectationFailed
from lakebed.model.runs import ExpectationReport
from lakebed.pipelines.columns import col
from lakebed.pipelines.context import Context
from lakebed.pipelines.expectations import Expectation

REASON, RUN = "_reason", "_run"
_REASONS = "__lakebed_reasons"
_COPY, _FOUND = "__lakebed_copy", "__lakebed_found"


@dataclass(frozen=True, slots=True)
class Parted:
    """The rows that stay, and those that go to each quarantine table."""

    rows: DataFrame
    rejected: dict[str, DataFrame] = field(default_factory=dict)
    reports: tuple[ExpectationReport, ...] = ()
    dropped: int = 0


def part(context: Context, rows: DataFrame, expectations: Sequence[Expectation]) -> Parted:
    """Take out the rows for which an expectation to drop does not hold; `rows` are materialised."""
    drops = [e for e in expectations if e.action == "drop"]
    if not drops:
        return Parted(rows)
    flagged = context.spool(_flagged(context, rows, drops))
    counted = flagged.agg(
        F.count(F.when(F.size(_REASONS) > 0, 1)),
        *(F.count(F.when(F.array_contains(_REASONS, _name(n, e)), 1)) for n, e in _numbered(drops)),
    ).first()
    counts = [int(value) for value in counted or ()]
    bad = flagged.where(F.size(_REASONS) > 0)
    rejected = {}
    for table in dict.fromkeys(e.quarantine for e in drops if e.quarantine is not None):
        names = [_name(n, e) for n, e in _numbered(drops) if e.quarantine == table]
        theirs = bad.where(F.arrays_overlap(_REASONS, F.array(*map(F.lit, names))))
        said = F.concat_ws(
            "; ", F.transform(_REASONS, lambda r: F.regexp_replace(r, r"^\d+: ", ""))
        )
        marked = theirs.withColumn(REASON, said).withColumn(RUN, F.lit(context.run.id))
        rejected[table] = marked.drop(_REASONS)
    return Parted(
        flagged.where(F.size(_REASONS) == 0).drop(_REASONS),
        {t: f for t, f in rejected.items() if counts and counts[0]},
        tuple(
            ExpectationReport(e.text, "drop", bad_rows == 0, bad_rows, quarantine=e.quarantine)
            for e, bad_rows in zip(drops, counts[1:], strict=True)
        ),
        counts[0],
    )


def judge(
    context: Context, rows: DataFrame, expectations: Sequence[Expectation]
) -> tuple[int, tuple[ExpectationReport, ...]]:
    """How many rows there are, and what came of the expectations to fail and to warn."""
    wanted = [e for e in expectations if e.action != "drop"]
    simple = [e for e in wanted if e.kind not in ("unique", "references")]
    counted = rows.agg(F.count(F.lit(1)), *map(_measure, simple)).first()
    measured = list(counted) if counted is not None else [0]
    count, now_s = int(measured[0]), context.run.run.started_ms / 1000
    reports = {
        id(e): _judged(e, count, value, now_s)
        for e, value in zip(simple, measured[1:], strict=True)
    }
    for each in wanted:
        if id(each) not in reports:
            found = _copies(rows, each) if each.kind == "unique" else _strays(context, rows, each)
            number = int((found.first() or [0])[0] or 0)
            reports[id(each)] = ExpectationReport(each.text, each.action, number == 0, number)
    return count, tuple(reports[id(e)] for e in wanted)


def refuse_failed(
    table: str,
    rows: DataFrame,
    expectations: Sequence[Expectation],
    found: Sequence[ExpectationReport],
) -> None:
    failed = [r for r in found if r.action == "fail" and not r.passed]
    if not failed:
        return
    said = "; ".join(f"{r.text}: {r.detail or f'{r.rows:,} rows are not so'}" for r in failed)
    texts = {r.text for r in failed}
    example = next(
        (_example(rows, e) for e in expectations if e.text in texts and e.kind in _SIMPLE), None
    )
    raise ExpectationFailed(
        f"step {table}: not as expected: {said}" + (f"; for example {example}" if example else ""),
        hint="correct the input or the expectation; no table was changed",
        table=table,
    )


_SIMPLE = ("condition", "not_null")


def _example(rows: DataFrame, expectation: Expectation) -> str | None:
    found = rows.where(~holds(expectation)).limit(1).collect()
    if not found:
        return None
    listed = [f"{n}={v!r}" for n, v in found[0].asDict().items()]
    return ", ".join(listed[:6]) + (", …" if len(listed) > 6 else "")


def holds(expectation: Expectation) -> Column:
    """TRUE where a row is as expected; NULL is not."""
    if expectation.kind == "not_null":
        made = F.lit(True)
        for name in expectation.columns:
            made = made & col(name).isNotNull()
        return made
    return F.coalesce(F.expr(expectation.text).cast("boolean"), F.lit(False))


def _measure(expectation: Expectation) -> Column:
    if expectation.kind == "row_count":
        return F.count(F.lit(1))
    if expectation.kind == "freshness":
        return F.max(col(expectation.columns[0])).cast("timestamp").cast("double")
    return F.count(F.when(~holds(expectation), 1))


def _judged(
    expectation: Expectation, count: int, value: float | None, now_s: float
) -> ExpectationReport:
    e = expectation
    if e.kind == "row_count":
        fits = (e.least is None or count >= e.least) and (e.most is None or count <= e.most)
        return ExpectationReport(e.text, e.action, fits, detail=f"there are {count:,} rows")
    if e.kind == "freshness":
        if value is None:
            return ExpectationReport(e.text, e.action, False, detail="there is no time")
        age = now_s - value
        fits = age <= (e.within_s or 0)
        return ExpectationReport(e.text, e.action, fits, detail=f"the newest is {age:,.0f} s old")
    return ExpectationReport(e.text, e.action, not value, int(value or 0))


def _copies(rows: DataFrame, expectation: Expectation) -> DataFrame:
    grouped = rows.groupBy(*map(col, expectation.columns)).count()
    return grouped.where("count > 1").agg(F.sum(F.col("count") - 1))


def _strays(context: Context, rows: DataFrame, expectation: Expectation) -> DataFrame:
    return _found(context, rows, expectation, _FOUND).agg(F.count(F.when(~F.col(_FOUND), 1)))


def _found(context: Context, rows: DataFrame, expectation: Expectation, flag: str) -> DataFrame:
    """The rows with a flag: is what they refer to there? NULL refers to nothing."""
    e = expectation
    assert e.table is not None
    there = context.table(e.table).select(
        *(col(o).alias(f"{flag}_{n}") for n, o in enumerate(e.other_columns))
    )
    there = there.distinct().withColumn(f"{flag}_there", F.lit(True))
    on = F.lit(True)
    none = F.lit(False)
    for n, name in enumerate(e.columns):
        on = on & (col(name) == F.col(f"{flag}_{n}"))
        none = none | col(name).isNull()
    joined = rows.join(there, on, "left")
    flagged = joined.withColumn(flag, none | F.coalesce(F.col(f"{flag}_there"), F.lit(False)))
    return flagged.select(*map(col, rows.columns), F.col(flag))


def _flagged(context: Context, rows: DataFrame, drops: Sequence[Expectation]) -> DataFrame:
    names = rows.columns
    said: list[Column] = []
    # Of rows that are the same somewhere, one stays: one that nothing else is wrong with.
    for number, each in sorted(_numbered(drops), key=lambda n: n[1].kind == "unique"):
        name = F.lit(_name(number, each))
        if each.kind == "unique":
            flag = f"{_COPY}_{number}"
            wrong = [F.when(s.isNotNull(), 1).otherwise(0) for s in said]
            worst = F.greatest(F.lit(0), F.lit(0), *wrong)
            window = Window.partitionBy(*map(col, each.columns)).orderBy(worst)
            rows = rows.withColumn(flag, F.row_number().over(window))
            said.append(F.when(F.col(flag) > 1, name))
        elif each.kind == "references":
            flag = f"{_FOUND}_{number}"
            rows = _found(context, rows, each, flag)
            said.append(F.when(~F.col(flag), name))
        else:
            said.append(F.when(~holds(each), name))
    return rows.select(
        *map(col, names),
        F.filter(F.array_sort(F.array(*said)), lambda r: r.isNotNull()).alias(_REASONS),
    )


def _numbered(drops: Sequence[Expectation]) -> list[tuple[int, Expectation]]:
    return list(enumerate(drops))


def _name(number: int, expectation: Expectation) -> str:
    return f"{number}: {expectation.text}"
