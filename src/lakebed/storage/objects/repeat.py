"""Repeats of what a store may have done although it did not say so, with back-off and jitter."""

import random
import time
from collections.abc import Iterator

_FIRST_S = 0.1
_LONGEST_S = 5.0


def attempts(within_s: float) -> Iterator[bool]:
    """One item per attempt, True for the last one; waits between them."""
    started = time.monotonic()
    wait_s = _FIRST_S
    while (spent_s := time.monotonic() - started) + wait_s < within_s:
        yield False
        # Writers that were refused together must not come back together.
        time.sleep(min(random.uniform(0, wait_s), max(0.0, within_s - spent_s)))
        wait_s = min(_LONGEST_S, wait_s * 2)
    yield True
