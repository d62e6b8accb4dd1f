"""Calls into the engine that Ctrl-C can stop: Python sees signals only between its own steps."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from threading import current_thread, main_thread
from typing import TypeVar

T = TypeVar("T")
_AGAIN_S = 0.05


def interruptible(call: Callable[[], T], interrupt: Callable[[], None]) -> T:
    """What the call gives; signals reach the main thread alone, so only its calls need a helper."""
    if current_thread() is not main_thread():
        return call()
    helper = ThreadPoolExecutor(1)
    answer = helper.submit(call)
    helper.shutdown(wait=False)
    try:
        return answer.result()
    finally:
        while not answer.done():  # Ctrl-C, or another signal's handler that raises
            with suppress(KeyboardInterrupt):
                interrupt()
                wait([answer], _AGAIN_S)
