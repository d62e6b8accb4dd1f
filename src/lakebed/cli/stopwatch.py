"""How long statements take, told on stderr."""

import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

from lakebed.cli.output import say

T = TypeVar("T")


class Stopwatch:
    def __init__(self, *, wanted: bool) -> None:
        self.wanted = wanted

    def each(self, answers: Iterable[T]) -> Iterator[T]:
        """Each answer, and the time from asking for it until the next one is asked for."""
        begun = time.perf_counter()
        for answer in answers:
            yield answer
            if self.wanted:
                say(f"{1000 * (time.perf_counter() - begun):,.1f} ms")
            begun = time.perf_counter()
