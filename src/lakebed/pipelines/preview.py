"""What a run would do, told without running it: from cursors, versions and files alone."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from lakebed.api.lake import Lake
from lakebed.api.spark import Spark
from lakebed.model.errors import PipelineInvalid
from lakebed.pipelines.context import Context
from lakebed.pipelines.deciding import Prospect, refuse_unknown_tables, survey, tables_of
from lakebed.pipelines.pipeline import Pipeline
from lakebed.pipelines.reading import Reading


@dataclass(frozen=True, slots=True)
class Previewed:
    table: str
    what: str
    reasons: tuple[str, ...]

    def to_plain(self) -> dict[str, object]:
        return asdict(self)


def preview(
    lake: Lake,
    pipeline: Pipeline,
    *,
    select: str | Sequence[str] = (),
    full_refresh: str | Sequence[str] = (),
    backfill: str | None = None,
    where: str | None = None,
    params: Mapping[str, object] | None = None,
) -> list[Previewed]:
    """What run() would do with the same arguments."""
    planned = pipeline.plan(
        select=select, full_refresh=full_refresh, backfill=backfill, where=where, params=params
    )
    with lake.runs.peek(pipeline.name) as looking:
        pinned = looking.look(tables_of(planned))
        refuse_unknown_tables(planned, pinned)
        graph = pipeline.graph()
        context = Context(looking, graph, pipeline.folder, pinned, _no_spark)
        return [_previewed(context, each) for each in survey(context, planned).values()]


def _previewed(context: Context, prospect: Prospect) -> Previewed:
    planned, step = prospect.planned, prospect.planned.step
    reasons = [_told(r) for r in prospect.readings.values()]
    reasons += [f"after {table}" for table in prospect.behind]
    if planned.where is not None:
        reasons.append(f"where {planned.where}")
    made = step.output.mode if context.has_table(step.table) else f"{step.output.mode}, creates it"
    return Previewed(
        step.table, f"{planned.how} ({made})" if prospect.runs else "nothing new", tuple(reasons)
    )


def _told(reading: Reading) -> str:
    report = reading.report
    if not reading.is_there:
        return f"{report.name}: not there yet"
    if report.files is not None:
        return f"{report.name}: {report.files:,} new files"
    if report.until is None:
        return f"{report.name}: always read"
    if not reading.is_new:
        return f"{report.name}: version {report.until}, nothing new"
    since = "" if report.after is None else f" after version {report.after}"
    return f"{report.name}:{since} up to version {report.until}"


def _no_spark() -> Spark:
    raise PipelineInvalid(
        "only Spark can list these files", hint="a dry run knows local files and tables"
    )
