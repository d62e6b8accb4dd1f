"""Columns that are made here come from no line of the user's, so Spark need not look for one.

PySpark asks the stack and Java for every column, which takes milliseconds each.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from pyspark.errors import utils

_SWITCH = "_enable_debugging_cache"  # PySpark has one for all threads, and reads it for each column
_inside: ContextVar[bool] = ContextVar("inside", default=False)


class _Outside:
    """True for the columns of all others, whatever their thread, if lines are wanted at all."""

    def __bool__(self) -> bool:
        return not _inside.get()


@contextmanager
def without_lines() -> Iterator[None]:
    """Columns of this block, made by this thread, have no line that errors could name."""
    # The first answer stays: the session's setting, as the next column would have found it.
    known = getattr(utils, _SWITCH, False)
    if known is True or (known is None and utils.is_debugging_enabled()):
        setattr(utils, _SWITCH, _Outside())
    token = _inside.set(True)
    try:
        yield
    finally:
        _inside.reset(token)
