"""Where in the user's own file something went wrong, and what it was, in one message."""

import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException, QueryContext

from lakebed.engines.spark.losses import loss_in, text_of
from lakebed.model.errors import CommitConflict, LakebedError, StepFailed
from lakebed.pipelines.plan import Planned
from lakebed.pipelines.step import Step

_MORE = 5  # lines, where the first one only leads up to them


def user_line(error: BaseException, file: str) -> str:
    """`file.py:12`: the innermost line of the user's file that led to the error."""
    name = Path(file).name
    if isinstance(error, SyntaxError) and error.lineno is not None:
        return f"{Path(error.filename or file).name}:{error.lineno}"
    wanted = str(Path(file).resolve())
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.lineno is not None and str(Path(frame.filename).resolve()) == wanted
    ]
    return f"{name}:{lines[-1]}" if lines else name


def step_failed(step: Step, error: Exception) -> Exception:
    """One sentence with the step's name and the user's line; errors of lakebed keep their kind."""
    place = _place(step, error)
    if isinstance(error, LakebedError):
        if "step" in error.context:
            return error
        return type(error)(
            f"step {step.table} ({place}): {error.message}",
            hint=error.hint,
            **{**error.context, "step": step.table, "place": place},
        )
    ours = ":" not in user_line(error, step.file)
    if ours and not isinstance(error, PySparkException | Py4JError | ConnectionError):
        return error  # not from the step: a defect, or a machine that fails
    what, hint = _spoken(error)
    return StepFailed(
        f"step {step.table} ({place}): {what}", hint=hint, step=step.table, place=place
    )


def output_moved(steps: Sequence[Planned], error: LakebedError, attempts: int) -> CommitConflict:
    """Somebody else changed an output while the run went on, every time."""
    table = str(error.context.get("table", "one of its tables"))
    step = next((p.step for p in steps if table in p.step.made), None)
    named = {} if step is None else {"step": step.table, "place": step.place}
    where = "" if step is None else f"step {step.table} ({step.place}): "
    return CommitConflict(
        f"{where}somebody else changed {table} while the run went on, {attempts} times:"
        f" {error.message}",
        hint="run it again when others do not write to its tables; no table was changed",
        **{**error.context, **named},
    )


def _place(step: Step, error: BaseException) -> str:
    found = user_line(error, step.file) if step.file else ""
    if ":" in found:
        return found
    return _call_site(error, step) or step.place


def _call_site(error: BaseException, step: Step) -> str | None:
    """Rows are made when they are needed: Spark remembers which line asked for the column."""
    for context in _contexts(error):
        try:
            site = context.callSite().strip()
        except PySparkException:
            continue  # a text of SQL has no line of its own
        path, _, line = site.rpartition(":")
        if path and line.isdigit() and Path(path).name == Path(step.file).name:
            return f"{Path(path).name}:{line}"
    return None


def _contexts(error: BaseException | None) -> Iterator[QueryContext]:
    """Of an error of Spark's, or of the one that was made into another."""
    while error is not None:
        if isinstance(error, PySparkException):
            try:
                yield from error.getQueryContext() or ()
            except (Py4JError, ConnectionError):
                return  # Java, which knows, is gone
        error = error.__cause__


def _spoken(error: BaseException) -> tuple[str, str]:
    """(what happened, what to do)"""
    text = text_of(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if isinstance(error, Py4JError) and len(lines) > 1:
        lines = [lines[1].lstrip(": "), *lines[2:]]  # the first names a call that nobody made
    first = lines[0] if lines else ""
    for line in lines[1:_MORE] if first.endswith(":") else ():
        first = f"{first} {line}"
    python = [line for line in lines if line.startswith(("Traceback", "pyspark.errors"))]
    if python:
        # An exception inside a Python function that Spark called: its own last line says it.
        last = next((line for line in reversed(lines) if _is_exception(line)), first)
        return f"a function that Spark called raised {last}", "correct the function or its input"
    loss = loss_in(error)
    if loss is not None:
        return loss
    if "ClassNotFoundException: org.postgresql" in text or "No suitable driver" in text:
        hint = "PostgreSQL's: `lakebed spark jars --set jdbc`; others: --conf spark.jars=FILE.jar"
        return f"Spark has no driver for the database: {first}", hint
    if "No space left on device" in text:
        return "no space is left on a disk that Spark writes to", "make room, then run again"
    return f"{type(error).__name__}: {first}", "correct the step, then run again"


def _is_exception(line: str) -> bool:
    name, colon, _ = line.partition(":")
    return (
        bool(colon)
        and name.replace(".", "").isidentifier()
        and name.endswith(("Error", "Exception"))
    )
