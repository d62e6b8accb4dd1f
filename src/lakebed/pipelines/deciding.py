"""Which steps of a run have anything to do, told before Spark is asked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from lakebed.api.active_run import PinnedTable
from lakebed.model.errors import PipelineInvalid
from lakebed.model.runs import Cursor
from lakebed.pipelines.context import Context
from lakebed.pipelines.failures import step_failed
from lakebed.pipelines.inputs import Files
from lakebed.pipelines.plan import Planned
from lakebed.pipelines.reading import Reading, look_at

CODE, PARAMETERS = "@code", "@parameters"


@dataclass(frozen=True, slots=True)
class Prospect:
    """What a step may have to do; `behind` are steps before it that may give it more."""

    planned: Planned
    readings: Mapping[str, Reading]
    runs: bool
    behind: tuple[str, ...]


def survey(context: Context, steps: Sequence[Planned]) -> dict[str, Prospect]:
    """By table, in order; what is said of a step without others behind it is final."""
    found: dict[str, Prospect] = {}
    for planned in steps:
        step = planned.step
        behind = tuple(
            s.table
            for s in context.graph.before(step)
            if (other := found.get(s.table)) is not None and other.runs
        )
        try:
            readings = {n: look_at(context, planned, i) for n, i in step.inputs.items()}
            runs = bool(behind) or must_run(context, planned, readings, marks_of(planned))
        except Exception as error:  # listing files is left to Spark, which may raise anything
            raise step_failed(step, error) from error
        found[step.table] = Prospect(planned, readings, runs, behind)
    return found


def must_run(
    context: Context, planned: Planned, readings: Mapping[str, Reading], marks: list[Cursor]
) -> bool:
    """Is there anything new for a step: input, code, parameters, or no table yet?"""
    step = planned.step
    if waits(readings):
        return False
    if planned.how != "incremental" or any(r.is_new for r in readings.values()):
        return True
    if not readings:  # it makes its rows itself
        return True
    if all(_is_nothing(r) for r in readings.values()):
        return False
    before = [context.run.cursor(step.table, mark.input) for mark in marks]
    changed = any(b is None or b.mark != m.mark for b, m in zip(before, marks, strict=True))
    return changed or not context.has_table(step.table)


def waits(readings: Mapping[str, Reading]) -> bool:
    """Is a table that another step makes not there yet, because that step had nothing to do?"""
    return any(not r.is_there for r in readings.values())


def _is_nothing(reading: Reading) -> bool:
    """No file was ever there, and nobody says what its columns would be."""
    given = reading.given
    return isinstance(given, Files) and not (reading.files or reading.known or given.schema)


def marks_of(planned: Planned) -> list[Cursor]:
    """What a step is, beside its inputs: other code or parameters make other rows."""
    step = planned.step
    said = repr(sorted((k, str(v)) for k, v in planned.values.items()))
    return [
        Cursor(step.table, CODE, mark=step.digest),
        Cursor(step.table, PARAMETERS, mark=said),
    ]


def tables_of(steps: Sequence[Planned]) -> list[str]:
    """Every table that the steps read or write."""
    names: dict[str, None] = {}
    for planned in steps:
        names |= dict.fromkeys((*planned.step.tables_read, *planned.step.made))
    return list(names)


def refuse_unknown_tables(steps: Sequence[Planned], pinned: Mapping[str, PinnedTable]) -> None:
    """Every table that is read is there, or made by a step of this run."""
    made = {t for p in steps for t in p.step.made}
    for planned in steps:
        step = planned.step
        for table in step.tables_read:
            if table in made or table in pinned:
                continue
            close = get_close_matches(table, [*pinned, *made], n=1)
            raise PipelineInvalid(
                f"step {step.table} ({step.place}) reads {table}, which is not there",
                hint=f"did you mean {close[0]}?" if close else "create it, or check the name",
                step=step.table,
                place=step.place,
            )
