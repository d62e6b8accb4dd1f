"""Steps of reads that engines take in threads of their own.

An engine that has rows enough may leave a thread behind in the middle of a step. Python ends such a
thread when the process ends, which DataFusion answers by an abort: so the end waits for the step.
"""

import atexit
import time
from collections.abc import Iterator
from threading import Condition
from typing import TypeVar

T = TypeVar("T")
_WAIT_S = 10.0
_SETTLE_S = 0.02  # what the engine does with a step's result


class Steps:
    def __init__(self) -> None:
        self._changed = Condition()
        self._running = 0
        self._taken = 0

    def watched(self, items: Iterator[T]) -> Iterator[T]:
        while True:
            self._count(1)
            try:
                item = next(items, None)
            finally:
                self._count(-1)
            if item is None:
                return
            yield item

    def wait(self) -> None:
        """Until no step is running; there may be others later."""
        if not self._taken:
            return
        with self._changed:
            self._changed.wait_for(lambda: self._running == 0, _WAIT_S)
        time.sleep(_SETTLE_S)

    def _count(self, by: int) -> None:
        with self._changed:
            self._running += by
            self._taken += 1
            self._changed.notify_all()


STEPS = Steps()
atexit.register(STEPS.wait)
