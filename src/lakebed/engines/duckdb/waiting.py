"""Calls into the engine that Ctrl-C can stop: Python sees signals only between its own steps."""

from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from threading import Thread, current_thread, main_thread
from typing import TypeVar

T = TypeVar("T")
_AGAIN_S = 0.05


def interruptible(call: Callable[[], T], interrupt: Callable[[], None]) -> T:
    """What the call gives; signals reach the main thread alone, so only its calls need a helper."""
    if current_thread() is not main_thread():
        return call()
    answer = Future[T]()
    thread = Thread(target=_answer, args=(call, answer), daemon=True)
    thread.start()
    try:
        return answer.result()
    finally:
        while not answer.done():  # Ctrl-C, or another signal's handler that raises
            with suppress(KeyboardInterrupt):
                interrupt()
                thread.join(_AGAIN_S)


def _answer(call: Callable[[], T], answer: "Future[T]") -> None:
    try:
        answer.set_result(call())
    except BaseException as error:  # it is raised where the answer is waited for
        answer.set_exception(error)
