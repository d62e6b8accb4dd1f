"""What a step reads in this run: how far each input has moved, and its rows as a frame."""

import re
import warnings
from dataclasses import dataclass, field
from itertools import islice

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakebed.model.errors import PipelineInvalid, StepFailed
from lakebed.model.ids import Version
from lakebed.model.runs import Cursor, Derivation, FileMark, InputReport
from lakebed.pipelines.context import Context
from lakebed.pipelines.inputs import CHANGES, Changes, Current, Files, Input, Jdbc, Source
from lakebed.pipelines.listing import list_files
from lakebed.pipelines.net import change_feed, net_changes
from lakebed.pipelines.plan import Planned

_EVERY_COLUMN = {"mergeSchema": "true"}  # also those that only some of the files have
# A row that cannot be read is no NULL: neither one that is short where the step asks for its other
# columns alone, nor one of a file whose columns stand in another order.
_STRICT = {
    "csv": {"mode": "FAILFAST", "enforceSchema": "false", "columnPruning": "false"},
    "json": {"mode": "FAILFAST"},
    "parquet": _EVERY_COLUMN,
    "orc": _EVERY_COLUMN,
}
_WILDCARD = re.compile(r"[][{}*?\\]")  # what a path says to Spark unless it is escaped
_AT_ONCE = 1_000  # files to ask the database for: what was read is never held as a whole


class InputWarning(UserWarning):
    """An input is not read as one may expect."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One input of a step in this run; decided after the steps before it, before Spark is asked."""

    given: Input
    is_new: bool
    report: InputReport
    cursor: Cursor | None = None
    after: Version | None = None
    until: Version | None = None
    files: tuple[FileMark, ...] = ()
    known: str | None = None  # one of the files that were read before
    forgets: bool = False  # marks of files begin anew
    is_there: bool = True
    derivation: Derivation | None = field(default=None)


def look_at(context: Context, planned: Planned, given: Input) -> Reading:
    match given:
        case Current() | Changes():
            if not context.has_table(given.table):
                return _absent(given)
            return _table_reading(context, planned, given)
        case Files():
            return _files_reading(context, planned, given)
        case Jdbc() | Source():
            kind, _, name = given.key.partition(":")
            derivation = Derivation(planned.step.table, given.key)
            return Reading(given, True, InputReport(name, kind), derivation=derivation)


def frame_of(context: Context, planned: Planned, reading: Reading) -> DataFrame:
    """What is no table is opened once: columns are asked for then, or a function is called."""
    if isinstance(reading.given, Current | Changes):
        return _frame(context, reading)
    key = (planned.step.table, id(reading.given))
    if key not in context.frames:
        context.frames[key] = _frame(context, reading)
    return context.frames[key]


def _frame(context: Context, reading: Reading) -> DataFrame:
    match reading.given:
        case Current(table):
            return context.table(table)
        case Changes(feed=True):
            return change_feed(context, reading.given, reading.after)
        case Changes():
            return net_changes(context, reading.given, reading.after)
        case Files():
            return _files_frame(context, reading, reading.given)
        case Jdbc(url, options):
            return context.session.read.format("jdbc").option("url", url).options(**options).load()
        case Source(make):
            made: object = make(context.session)
            if not isinstance(made, DataFrame):
                raise StepFailed(
                    f"{reading.given.key} gave {type(made).__name__}, no DataFrame",
                    hint="return a DataFrame of the session it is given",
                )
            return made


def _absent(given: Current | Changes) -> Reading:
    kind, _, name = given.key.partition(":")
    return Reading(given, False, InputReport(name, kind), is_there=False)


def _table_reading(context: Context, planned: Planned, given: Current | Changes) -> Reading:
    step, name = planned.step.table, given.table
    pinned, moved = context.pinned.get(name), context.run.is_changed(name)
    before = context.run.cursor(step, given.key)
    if before is None and pinned is not None and isinstance(given, Changes):
        before = context.run.cursor_of(step, CHANGES, pinned.id)  # it had another name then
    known = before is not None and pinned is not None and before.table_id == pinned.id
    after = before.version if before is not None and known else None
    if planned.how != "incremental":
        after = None
    elif isinstance(given, Changes) and before is not None and not known:
        raise PipelineInvalid(
            f"table {name} is not the one that was read before: it was dropped and made again",
            hint=f"--full-refresh {step}",
        )
    if isinstance(given, Changes):
        is_new = (moved or _has_moved(pinned, after)) and context.run.has_changed(name, after)
    else:
        is_new = moved or _has_moved(pinned, after)
    until = None if moved or pinned is None else pinned.version
    cursor = Cursor(step, given.key, pinned.id if pinned else None, until, table=name)
    shown = after if isinstance(given, Changes) else None
    kind, _, _ = given.key.partition(":")
    return Reading(
        given,
        is_new,
        InputReport(name, kind, shown, until),
        cursor,
        after,
        until,
        derivation=Derivation(step, name, pinned.id if pinned else None, shown, until),
    )


def _has_moved(pinned: object, after: Version | None) -> bool:
    return after is None or getattr(pinned, "version", None) != after


def _files_reading(context: Context, planned: Planned, given: Files) -> Reading:
    step, key = planned.step.table, given.key
    again = planned.how != "incremental"
    new: dict[str, FileMark] = {}
    known = changed = None
    others = [i.key for i in planned.step.inputs.values() if isinstance(i, Files) and i.key != key]
    listed = list_files(context, step, given)
    while part := {f.path: f for f in islice(listed, _AT_ONCE)}:
        read = context.run.marks(step, key, list(part), others)
        new |= {path: f for path, f in part.items() if again or path not in read}
        known = known or min(read, default=None)
        changed = changed or min((p for p, f in read.items() if f != part[p]), default=None)
    if changed and not again:
        warnings.warn(
            f"step {step}: {changed} changed after it was read; it is not read again"
            f" (--full-refresh {step} would)",
            InputWarning,
            stacklevel=2,
        )
    return Reading(
        given,
        bool(new),
        InputReport(given.pattern, "files", files=len(new)),
        files=tuple(new[path] for path in sorted(new)),
        known=known,
        forgets=planned.how == "full refresh",
        derivation=Derivation(step, key),
    )


def _files_frame(context: Context, reading: Reading, given: Files) -> DataFrame:
    reader = context.session.read.format(given.format)
    reader = reader.options(**_STRICT.get(given.format, {})).options(**given.options)
    if given.schema is not None:
        reader = reader.schema(given.schema)
    paths = [_WILDCARD.sub(r"\\\g<0>", f.path) for f in reading.files]
    if not paths and given.schema is None and not reading.known:
        raise StepFailed(
            f"no file matches {given.pattern!r}",
            hint="say what the columns are: files(…, schema='id long, …')",
        )
    if paths:
        frame = reader.load(paths)
    elif given.schema is not None:
        frame = context.session.createDataFrame([], given.schema)
    else:
        frame = reader.load(_WILDCARD.sub(r"\\\g<0>", reading.known or "")).limit(0)
    if given.path_column is None:
        return frame
    if not paths:
        return frame.withColumn(given.path_column, F.lit(None).cast("string"))
    return frame.withColumn(given.path_column, F.col("_metadata.file_path"))
