"""Errors on their way from executors to the driver, and what Spark's own errors mean to a caller.

Spark hands on text alone: an error of ours travels inside of it, in hexadecimal between two marks.
"""

import base64
import pickle
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import orjson
from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import Column
from pyspark.sql import functions as F

from lakebed.engines.spark.losses import has_lost_rows, loss_in, text_of
from lakebed.engines.spark.origins import without_lines
from lakebed.model.errors import (
    ConstraintViolated,
    ExecutorLost,
    InvalidExpression,
    LakebedError,
    QueryError,
    SchemaMismatch,
    SparkError,
)

_PICKLED = re.compile(r"lakebed-error:([A-Za-z0-9+/=]+):")
_RAISED = re.compile(r"lakebed-refusal:([0-9A-F]+):")
_KINDS: Mapping[str, type[LakebedError]] = {
    kind.code: kind for kind in (SchemaMismatch, ConstraintViolated)
}
_SQLSTATE = re.compile(r"\s*SQLSTATE: \w+.*", re.DOTALL)


class Refused(Exception):
    """Carries an error of ours out of a Python worker."""

    def __init__(self, error: LakebedError) -> None:
        text = base64.b64encode(pickle.dumps(error)).decode()
        super().__init__(f"lakebed-error:{text}: {error.code}: {error.message}")


def refusal(kind: type[LakebedError], message: Column, *, hint: str, **context: str) -> Column:
    """A column that raises the error for the row it is computed for."""
    told = F.struct(
        F.lit(kind.code).alias("code"),
        message.alias("message"),
        F.lit(hint).alias("hint"),
        F.lit(orjson.dumps(context).decode()).alias("context"),
    )
    marked = F.concat(F.lit("lakebed-refusal:"), F.hex(F.to_json(told)), F.lit(":"))
    return F.raise_error(marked)


@contextmanager
def told(what: str) -> Iterator[None]:
    """Errors of Spark in this block become ours; `what` names the work in the message."""
    try:
        with without_lines():
            yield
    except (PySparkException, Py4JError, ConnectionError) as error:
        raise _ours(error, what) from error


def _ours(error: PySparkException | Py4JError | ConnectionError, what: str) -> LakebedError:
    text = text_of(error)
    pickled = _PICKLED.search(text)
    if pickled is not None:
        ours: LakebedError = pickle.loads(base64.b64decode(pickled[1]))  # noqa: S301 - our own
        return ours
    raised = _RAISED.search(text)
    if raised is not None:
        said = orjson.loads(bytes.fromhex(raised[1]))
        context: dict[str, object] = orjson.loads(said["context"])
        return _KINDS[said["code"]](said["message"], hint=said["hint"], **context)
    if "No module named 'lakebed" in text:
        return SparkError(
            f"{what}: the Python of Spark's executors has no lakebed",
            hint="install lakebed there, or name the Python that has it as PYSPARK_PYTHON",
        )
    if has_lost_rows(text):
        return ExecutorLost(
            f"{what}: executors were lost with the rows that they kept for it",
            hint="try again; if it happens often, see why executors are lost",
        )
    loss = loss_in(error)
    if loss is not None:
        return SparkError(f"{what}: {loss[0]}", hint=loss[1])
    if isinstance(error, ParseException | AnalysisException):
        return InvalidExpression(
            f"{what}: {_first(text)}", hint="expressions are those of Spark SQL here"
        )
    if isinstance(error, PySparkException) and error.getCondition() is not None:
        return QueryError(f"{what}: {_first(text)}", hint="correct the values or the expression")
    return SparkError(
        f"{what} failed in Spark: {_first(text)}",
        hint="if a function of yours raised it, correct it; the cause of this error is Spark's own",
    )


def _first(text: str) -> str:
    """The first sentence, without Spark's codes and plans; and the last cause, if there is one."""
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    found = _SQLSTATE.sub("", lines[0] if lines else "")
    if found.startswith("An exception was thrown from the Python worker"):
        return lines[-1][:500]
    if found.startswith("An error occurred while calling") and len(lines) > 1:
        found = lines[1].removeprefix(": ")
    causes = [line for line in lines if line.startswith("Caused by: ")]
    return f"{found[:500]} ({causes[-1][:300]})" if causes else found[:500]
