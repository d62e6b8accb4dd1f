"""Errors on their way to a user of Spark, which hands on nothing but their text."""

from collections.abc import Iterator
from contextlib import contextmanager

from lakebed import LakebedError


class SourceFailed(Exception):
    """Says the code, what happened and what to do, in one line."""

    def __init__(self, error: LakebedError) -> None:
        hint = f" ({error.hint})" if error.hint else ""
        super().__init__(f"{error.code}: {error.message}{hint}")


@contextmanager
def told() -> Iterator[None]:
    """Around a block, or a function that is no generator."""
    try:
        yield
    except LakebedError as error:
        raise SourceFailed(error) from error
